package graphqlrequest

import (
	"fmt"
	"slices"
	"strings"
)

type kind string

// The kinds.
const (
	query        kind = "query"
	mutation     kind = "mutation"
	subscription kind = "subscription"
)

type operation struct {
	kind kind
	name string // "" for none
	// variables are the names of the variables that it declares.
	variables []string
}

// parseDocument returns the operations of a document. It checks the outline of the
// document, not what operations select: that depends on the schema, which the service has.
func parseDocument(document string) ([]operation, error) {
	p := &parser{lexer: lexer{rest: document, line: 1}}
	p.advance()
	var out []operation
	for p.err == nil && p.token.kind != 0 {
		if p.token.kind == text {
			p.advance() // a description
		}
		switch t := p.token; {
		case t.is("{"):
			out = append(out, operation{kind: query})
			p.selections()
		case t.is(string(query)), t.is(string(mutation)), t.is(string(subscription)):
			out = append(out, p.operation())
		case t.is("fragment"):
			p.fragment()
		case t.kind == name:
			p.fail("expected an operation or a fragment, found %s", t)
		default:
			p.unexpected()
		}
	}
	return out, p.err
}

// parser reads the definitions of a document. After an error it stays where it is.
type parser struct {
	lexer lexer
	token token
	err   error
}

func (p *parser) advance() {
	if p.err == nil {
		p.token, p.err = p.lexer.next()
	}
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &syntaxError{p.token.line, fmt.Sprintf(format, args...)}
	}
}

func (p *parser) unexpected() { p.fail("unexpected %s", p.token) }

func (p *parser) operation() operation {
	out := operation{kind: kind(p.token.text)}
	if p.advance(); p.token.kind == name {
		out.name = p.token.text
		p.advance()
	}
	if p.token.is("(") {
		isVariable := false
		p.brackets(func(t token) {
			if isVariable && t.kind == name {
				out.variables = append(out.variables, t.text)
			}
			isVariable = t.is("$")
		})
	}
	p.directives()
	p.selections()
	return out
}

func (p *parser) fragment() {
	if p.advance(); p.token.kind != name || p.token.is("on") {
		p.fail("a fragment needs a name")
	}
	if p.advance(); !p.token.is("on") {
		p.unexpected()
	}
	if p.advance(); p.token.kind != name {
		p.unexpected()
	}
	p.advance()
	p.directives()
	p.selections()
}

// directives skips directives, such as @include(if: $x).
func (p *parser) directives() {
	for p.err == nil && p.token.is("@") {
		if p.advance(); p.token.kind != name {
			p.unexpected()
		}
		if p.advance(); p.token.is("(") {
			p.brackets(nil)
		}
	}
}

func (p *parser) selections() {
	if !p.token.is("{") {
		p.unexpected()
		return
	}
	count := 0
	p.brackets(func(token) { count++ })
	if count == 0 {
		p.fail("nothing is selected")
	}
}

// brackets skips everything from an opening bracket to the one that closes it, and passes
// the tokens between them to a function, if there is one.
func (p *parser) brackets(visit func(token)) {
	closing := map[string]string{"(": ")", "[": "]", "{": "}"}
	opened := p.token
	open := []string{closing[opened.text]}
	for p.err == nil {
		p.advance()
		t := p.token
		switch {
		case p.err != nil:
			return
		case t.kind == 0:
			p.err = &syntaxError{opened.line, fmt.Sprintf("%s is not closed", opened)}
		case t.kind == punctuator && closing[t.text] != "":
			open = append(open, closing[t.text])
		case t.is(open[len(open)-1]):
			if open = open[:len(open)-1]; len(open) == 0 {
				p.advance()
				return
			}
		case t.is(")"), t.is("]"), t.is("}"):
			p.unexpected()
		}
		if visit != nil {
			visit(t)
		}
	}
}

// findOperation returns the operation of a document with a name, or its only operation.
// Otherwise it returns the member of the input that has to be changed, and why.
func findOperation(all []operation, name string) (found operation, member, problem string) {
	var names []string
	for _, o := range all {
		switch {
		case o.name == "" && len(all) > 1:
			return found, "query", "an operation without a name must be the only one"
		case slices.Contains(names, o.name):
			return found, "query", fmt.Sprintf("has two operations named %q", o.name)
		}
		names = append(names, o.name)
	}
	listed := strings.Join(names, ", ")
	at := slices.Index(names, name)
	switch {
	case len(all) == 0:
		return found, "query", "has no operation, only fragments"
	case name == "" && len(all) > 1:
		return found, "operation_name", "is required, because the query has several operations: " + listed
	case name == "":
		return all[0], "", ""
	case at < 0 && listed == "":
		return found, "operation_name", "the operation of the query has no name"
	case at < 0:
		return found, "operation_name", fmt.Sprintf("the query has no operation %q, only %s", name, listed)
	}
	return all[at], "", ""
}
