package openapi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/integration"
)

type parameter struct {
	at       *node
	name     string
	in       string
	required bool
	style    string
	explode  bool
	schema   *node
	content  bool // the value is JSON
}

// parameters returns the parameters of the operation, and those of its path that it does
// not replace.
func (b *builder) parameters() ([]parameter, error) {
	var out []parameter
	for _, list := range []*node{b.operation.at.get("parameters"), b.operation.on.get("parameters")} {
		for _, one := range list.list() {
			if err := b.step(1); err != nil {
				return nil, err
			}
			at := b.document.resolve(one)
			p := parameter{
				at: at, name: at.get("name").string(), in: at.get("in").string(), required: at.get("required").isTrue(), schema: at.get("schema"),
			}
			if slices.ContainsFunc(out, func(other parameter) bool { return other.name == p.name && other.in == p.in }) {
				continue
			}
			p.style = cmp.Or(at.get("style").string(), map[string]string{"query": "form", "cookie": "form"}[p.in], "simple")
			p.explode = p.style == "form"
			if given := at.get("explode"); given != nil {
				p.explode = given.isTrue()
			}
			if media := at.get("content").members(); len(media) > 0 {
				p.schema, p.content = media[0].get("schema"), true
				if !isJSON(media[0].name) {
					p.content = false // text as it is
				}
			}
			out = append(out, p)
			if len(out) > maxInputs {
				return nil, leftOut{list, fmt.Sprintf("it has more than %d parameters", maxInputs)}
			}
		}
	}
	return out, nil
}

func (p parameter) input(b *builder) (integration.Input, error) {
	of := p.schema
	if of == nil {
		of = p.at // without a schema, everything is allowed
	}
	in, s, err := b.converter.input([]*node{of}, 0, false)
	if err != nil {
		return in, err
	}
	if about := plain(p.at.get("description").string(), maxHelp); about != "" {
		in.Help = about
	}
	in.Required = p.required
	if example := p.at.get("example"); example != nil {
		s.example = example
	}
	b.setSamples(&in, of, s)
	in.Advanced = in.Advanced || p.at.get("deprecated").isTrue() || p.in == "header" && !p.required
	return in, nil
}

func (b *builder) addParameter(p parameter) error {
	switch {
	case p.in == "path":
		return nil
	case p.in == "cookie" && p.required:
		return leftOut{p.at, "it needs a cookie"}
	case p.in == "cookie":
		b.note(p.at, "the parameter is left out: requests have no cookies")
		return nil
	case p.in != "query" && p.in != "header":
		return b.withoutParameter(p, fmt.Sprintf("there are no parameters in %q", clip(p.in, 40)))
	case p.isCredential(b.converter):
		if p.in == "header" && strings.EqualFold(p.name, "Authorization") && len(b.security(b.operation)) == 0 {
			b.note(p.at, "the header is left out, because connections set it, but no security scheme says what it has: add a way to authenticate to auth")
		}
		return nil
	case p.name == "" || len(p.name) > 200 || !isClean(p.name) || isExpression(p.name) || isDirective(p.name):
		return b.withoutParameter(p, "its name cannot be used")
	case p.in == "header" && !isHeader(p.name):
		return b.withoutParameter(p, "requests cannot set this header")
	}
	in, err := p.input(b)
	if err != nil {
		return err
	}
	if p.in == "query" && in.Type == "object" && p.style == "form" && p.explode && !p.content {
		return b.addExploded(p, in)
	}
	if p.in == "query" && b.hasQuery(p.name) {
		return b.withoutParameter(p, "a member of another parameter has this name")
	}
	input := "input." + b.addInput(in, p.name, p.in)
	value := "${{ " + expression(input, in, p.style, p.explode, p.content) + " }}"
	if p.in == "header" {
		if !p.content && (in.Type == "list" || in.Type == "object") {
			value = "${{ " + joined(input, in.Type, ",", p.explode) + " }}"
		}
		return b.addHeader(p, value)
	}
	b.query.set(p.name, value)
	return nil
}

func (b *builder) addHeader(p parameter, value string) error {
	if slices.ContainsFunc(b.headers, func(m member) bool { return strings.EqualFold(m.name, p.name) }) {
		b.inputs = b.inputs[:len(b.inputs)-1]
		return b.withoutParameter(p, "another header has this name")
	}
	b.headers.set(p.name, value)
	return nil
}

// withoutParameter notes that a parameter is left out, or leaves the operation out if it is
// required.
func (b *builder) withoutParameter(p parameter, why string) error {
	if p.required {
		return leftOut{p.at, "a required parameter cannot be sent: " + why}
	}
	b.note(p.at, "the parameter is left out: "+why)
	return nil
}

// isDirective reports whether a name means something else in an object of a manifest.
func isDirective(name string) bool { return name == "$each" || name == "$base64" || name == "$mime" }

// isCredential reports whether the parameter is one that the connection sets. The document
// format leaves out these headers as well.
func (p parameter) isCredential(c *converter) bool {
	if p.in == "header" && slices.Contains([]string{"accept", "authorization", "content-type"}, strings.ToLower(p.name)) {
		return true
	}
	return len(p.name) <= 200 && c.credentials[p.in+" "+strings.ToLower(p.name)]
}

// addExploded adds an object whose members are parameters of their own.
func (b *builder) addExploded(p parameter, in integration.Input) error {
	if in.Properties == nil {
		return b.withoutParameter(p, "its members, which are parameters of their own, are not known")
	}
	input := "input." + b.addInput(in, p.name, p.in)
	for i := range in.Properties {
		name := in.Properties[i].Name
		if b.hasQuery(name) || b.credentials["query "+strings.ToLower(name)] {
			b.note(p.at, fmt.Sprintf("the member %q is not sent: a parameter of the query has this name", name))
			continue
		}
		b.query.set(name, "${{ "+input+"["+strconv.Quote(name)+"] }}")
	}
	return nil
}

func (b *builder) hasQuery(name string) bool {
	return slices.ContainsFunc(b.query, func(m member) bool { return m.name == name })
}

// expression returns the expression for the value of a parameter or of a field in a form.
func expression(input string, in integration.Input, style string, explode, content bool) string {
	separator := map[string]string{"spaceDelimited": " ", "pipeDelimited": "|"}[style]
	isList := in.Type == "list"
	switch {
	case content && in.Type != "string" && in.Type != "time":
		return optional(input, "toJSON("+input+")")
	case isList && style == "deepObject":
		return optional(input, "fromPairs(map("+input+", [string(#index), #]))")
	case isList && !explode, isList && separator != "" && !explode:
		return joined(input, in.Type, cmp.Or(separator, ","), false)
	case in.Type == "object" && style != "deepObject" && !explode:
		return joined(input, in.Type, cmp.Or(separator, ","), false)
	}
	return input
}

// optional returns an expression that is nil if the input is not given.
func optional(input, expression string) string { return input + " == nil ? nil : " + expression }

// joined returns the expression for a list or an object as one text.
func joined(input, kind, separator string, explode bool) string {
	if kind == "object" {
		return optional(input, pairs(input, explode))
	}
	return optional(input, "join("+input+", "+strconv.Quote(separator)+")")
}

// pairs returns the expression for an object as one text: name,value, or name=value.
func pairs(input string, explode bool) string {
	if explode {
		return "join(map(toPairs(" + input + `), #[0] + "=" + string(#[1])), ",")`
	}
	return "join(flatten(toPairs(" + input + `)), ",")`
}
