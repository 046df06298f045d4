package expr

import (
	"slices"
	"strconv"
	"strings"
)

const (
	maxSelector  = 512 // bytes
	maxCompounds = 32  // of one selector
)

// selector is a compiled list of CSS selectors: the compounds of all of them, one
// after the other.
type selector struct {
	compounds []compound
	typed     bool // it tests positions among elements with the same tag
}

// compound is a part of a selector between combinators, such as a.button[href].
type compound struct {
	combinator byte // to the compound before: 0 for none, or one of " >+~"
	last       bool // it ends a selector
	tag        string
	tests      []elementTest
}

type elementTest struct {
	kind  byte   // '[' for an attribute, ':' for a position, '!' for :not
	name  string // of the attribute
	op    byte   // '=' or the character before it, 0 if the attribute need only exist
	value string
	// The position is a×n + b for any n from 0, from the end if reverse is set, and
	// among the elements with the same tag if typed is set.
	a, b           int
	reverse, typed bool
	not            []compound
}

type selectorParser struct {
	rest  string
	count int
	typed bool
}

func compileSelector(text string) (*selector, error) {
	if len(text) > maxSelector {
		return nil, failf("the selector is longer than %d bytes", maxSelector)
	}
	p := &selectorParser{rest: text}
	out, err := p.list()
	if err != nil {
		return nil, err
	}
	return &selector{compounds: out, typed: p.typed}, nil
}

func invalidSelector(problem string) error { return failf("the selector is not valid: %s", problem) }

func (p *selectorParser) list() ([]compound, error) {
	var out []compound
	combinator := byte(0)
	for {
		p.space()
		c, err := p.compound()
		if err != nil {
			return nil, err
		}
		c.combinator = combinator
		out = append(out, c)
		combinator = p.combinator()
		last := &out[len(out)-1]
		switch {
		case p.rest == "" && combinator <= ' ':
			last.last = true
			return out, nil
		case p.rest != "" && p.rest[0] == ',' && combinator <= ' ':
			p.rest = p.rest[1:]
			last.last, combinator = true, 0
		case combinator == 0:
			return nil, invalidSelector("it has a character in the wrong place")
		}
	}
}

const cssSpace = " \t\n\r\f"

// space skips white space and reports whether there was any.
func (p *selectorParser) space() bool {
	before := len(p.rest)
	p.rest = strings.TrimLeft(p.rest, cssSpace)
	return len(p.rest) < before
}

// combinator reads what is between two compounds, 0 if nothing is.
func (p *selectorParser) combinator() byte {
	out := byte(0)
	if p.space() {
		out = ' '
	}
	if p.rest != "" && strings.IndexByte(">+~", p.rest[0]) >= 0 {
		out, p.rest = p.rest[0], p.rest[1:]
	}
	return out
}

func (p *selectorParser) compound() (compound, error) {
	var c compound
	if p.count++; p.count > maxCompounds {
		return c, failf("the selector has more than %d parts", maxCompounds)
	}
	found := false
	if p.take("*") {
		found = true
	} else if name, ok := p.name(); ok {
		c.tag, found = strings.ToLower(name), true
	}
	for p.rest != "" {
		test, ok, err := p.test()
		if err != nil {
			return c, err
		}
		if !ok {
			break
		}
		c.tests, found = append(c.tests, test), true
	}
	switch {
	case found:
		return c, nil
	case p.rest == "":
		return c, invalidSelector("it ends too early")
	}
	return c, invalidSelector("it has a character in the wrong place")
}

func (p *selectorParser) take(s string) bool {
	rest, ok := strings.CutPrefix(p.rest, s)
	p.rest = rest
	return ok
}

// test reads one test; ok is false if there is none.
func (p *selectorParser) test() (t elementTest, ok bool, err error) {
	switch p.rest[0] {
	case '#':
		t = elementTest{kind: '[', name: "id", op: '='}
	case '.':
		t = elementTest{kind: '[', name: "class", op: '~'}
	case '[':
		t, err = p.attribute()
		return t, true, err
	case ':':
		t, err = p.pseudo()
		return t, true, err
	default:
		return t, false, nil
	}
	sign := p.rest[:1]
	p.rest = p.rest[1:]
	if t.value, ok = p.name(); !ok {
		return t, true, invalidSelector("a name must follow " + sign)
	}
	return t, true, nil
}

func (p *selectorParser) attribute() (elementTest, error) {
	t := elementTest{kind: '['}
	p.rest = p.rest[1:]
	p.space()
	name, ok := p.name()
	if !ok {
		return t, invalidSelector("the name of an attribute must follow [")
	}
	t.name = strings.ToLower(name)
	p.space()
	if p.take("]") {
		return t, nil
	}
	t.op = '='
	if p.rest != "" && strings.IndexByte("~|^$*", p.rest[0]) >= 0 {
		t.op, p.rest = p.rest[0], p.rest[1:]
	}
	if !p.take("=") {
		return t, invalidSelector("= or ] must follow the name of an attribute")
	}
	p.space()
	if t.value, ok = p.quoted(); !ok {
		if t.value, ok = p.name(); !ok {
			return t, invalidSelector("a name or quoted text must follow =")
		}
	}
	p.space()
	if !p.take("]") {
		return t, invalidSelector("] is missing")
	}
	return t, nil
}

func (p *selectorParser) pseudo() (elementTest, error) {
	p.rest = p.rest[1:]
	name, _ := p.name()
	name = strings.ToLower(name)
	if name == "not" && p.take("(") {
		return p.not()
	}
	t := elementTest{kind: ':', b: 1}
	base, typed := strings.CutSuffix(name, "-of-type")
	t.typed, p.typed = typed, p.typed || typed
	if !typed {
		base, _ = strings.CutSuffix(name, "-child")
	}
	if base == name {
		base = ""
	}
	switch base {
	case "first":
		return t, nil
	case "last":
		t.reverse = true
		return t, nil
	case "nth", "nth-last":
		t.reverse = base == "nth-last"
		inner, rest, ok := strings.Cut(p.rest, ")")
		if position, found := strings.CutPrefix(inner, "("); ok && found {
			p.rest = rest
			if t.a, t.b, ok = parseNth(position); ok {
				return t, nil
			}
		}
		return t, invalidSelector(":" + name + " needs a position such as (2) or (2n+1)")
	}
	return t, failf("the selector uses a pseudo-class that is not supported; use :not and :first-child, :last-child, :nth-child, :nth-last-child and the same with -of-type")
}

// not reads the selectors of :not, which have no combinators.
func (p *selectorParser) not() (elementTest, error) {
	t := elementTest{kind: '!'}
	for {
		p.space()
		c, err := p.compound()
		if err != nil {
			return t, err
		}
		if slices.ContainsFunc(c.tests, func(t elementTest) bool { return t.kind == '!' }) {
			return t, invalidSelector(":not cannot be nested")
		}
		t.not = append(t.not, c)
		p.space()
		switch {
		case p.take(")"):
			return t, nil
		case !p.take(","):
			return t, invalidSelector(":not takes selectors without combinators")
		}
	}
}

func parseNth(s string) (a, b int, ok bool) {
	s = strings.ToLower(strings.Trim(s, cssSpace))
	switch s {
	case "odd":
		return 2, 1, true
	case "even":
		return 2, 0, true
	}
	step, offset, found := strings.Cut(s, "n")
	if !found {
		b, err := parseOffset(s)
		return 0, b, err == nil
	}
	switch step {
	case "", "+":
		a = 1
	case "-":
		a = -1
	default:
		var err error
		if a, err = parseOffset(step); err != nil {
			return 0, 0, false
		}
	}
	offset = strings.Trim(offset, cssSpace)
	if offset == "" {
		return a, 0, true
	}
	if offset[0] != '+' && offset[0] != '-' {
		return 0, 0, false
	}
	b, err := parseOffset(offset[:1] + strings.TrimLeft(offset[1:], cssSpace))
	return a, b, err == nil
}

// parseOffset parses a whole number of at most 9 digits.
func parseOffset(s string) (int, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	return int(n), err
}
