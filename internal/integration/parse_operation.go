package integration

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// operationName is the name of an operation. A breaking change makes a new one, name@2.
var operationName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,60}(@[2-9])?$`)

// propertyName is the name of a member of an object in an input.
var propertyName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

const maxCalls = 10

func (p *parser) operations(m *manifest) []Operation {
	var out []Operation
	p.answers = map[string]place{}
	polled := m.polled()
	for _, o := range m.Operations {
		out = append(out, p.operation(at("/operations", o.name), o.name, &o.value, slices.Contains(polled, o.name)))
	}
	for i := range out {
		p.linkInputs(at("/operations", out[i].Name, "input"), out[i].Name, out[i].Input, out)
	}
	return out
}

func (p *parser) operation(pointer, name string, o *manifestOperation, polled bool) Operation {
	out := Operation{Name: name, Title: o.Title, Summary: o.Summary, Hidden: o.Hidden, Deprecated: o.Deprecated}
	if !operationName.MatchString(name) {
		p.failf(pointer, "the name of an operation has lower-case letters, digits and underscores, and starts with a letter")
	}
	p.require(at(pointer, "title"), o.Title)
	if o.Timeout != "" {
		out.Timeout = p.duration(at(pointer, "timeout"), o.Timeout)
	}
	if (o.Request == nil) == (len(o.Do) == 0) {
		p.failf(pointer, "needs either a request, or do with several")
		return out
	}
	out.Input = p.inputs(at(pointer, "input"), o.Input)
	if o.Request != nil && o.Request.Page != nil || len(o.Do) > 0 && o.Do[len(o.Do)-1].Page != nil {
		out.Input = append(out.Input, listInputs()...)
	}
	where := p.operationPlace(inputNames(out.Input))
	if polled {
		where.roots["cursor"] = nil
	}
	out.Calls = p.calls(pointer, at(pointer, "request"), o.Request, o.Do, where)
	out.Output = p.optionalValue(at(pointer, "output"), o.Output, where.answerScope("items"))
	out.Rates = p.rates(at(pointer, "rate"), o.Rate, where)
	p.listMappings(pointer, o, &out, where)
	p.answers[name] = where
	return out
}

// operationPlace returns the place of the calls of an operation with inputs of these names.
func (p *parser) operationPlace(inputs []string) place {
	return place{p.shared, map[string][]string{"input": inputs, "results": {}, "step": {"key", "uuid"}}}
}

// calls compiles a request, or the calls in do. What comes after them reads their results
// in the place too.
func (p *parser) calls(pointer, requestAt string, request *manifestCall, do []manifestCall, where place) []Call {
	var out []Call
	calls, callsAt := do, func(i int) string { return at(pointer, "do", strconv.Itoa(i)) }
	if request != nil {
		calls, callsAt = []manifestCall{*request}, func(int) string { return requestAt }
	}
	if len(do) > maxCalls {
		p.failf(at(pointer, "do"), "has more than %d calls", maxCalls)
	}
	for i := range calls {
		p.checkCallID(callsAt(i), &calls[i], request != nil, where.roots["results"])
		out = append(out, *p.call(callsAt(i), &calls[i], where))
		if calls[i].Page != nil && i < len(calls)-1 {
			p.failf(at(callsAt(i), "page"), "only the last call can read a list in pages")
		}
		where.roots["results"] = append(where.roots["results"], calls[i].ID)
	}
	if request != nil {
		where.roots["results"] = []string{}
	}
	return out
}

func (p *parser) checkCallID(pointer string, c *manifestCall, single bool, earlier []string) {
	switch {
	case single && (c.ID != "" || c.If != ""):
		p.failf(pointer, "a request has no id and no if: use do")
	case !single && !identifier.MatchString(c.ID):
		p.failf(at(pointer, "id"), "is required: lower-case letters, digits and underscores, starting with a letter")
	case slices.Contains(earlier, c.ID):
		p.failf(at(pointer, "id"), "%q is already the id of an earlier call", c.ID)
	}
}

func (p *parser) rates(pointer string, rates []manifestRate, where place) []Rate {
	var out []Rate
	for i, r := range rates {
		at := at(pointer, strconv.Itoa(i))
		out = append(out, p.rate(at, r, where))
	}
	return out
}

func (p *parser) rate(pointer string, r manifestRate, where place) Rate {
	answer := where.names.scope(map[string][]string{"status": nil, "headers": nil, "body": nil})
	out := Rate{
		Requests: r.Requests, Per: p.program(at(pointer, "per"), r.Per, where.scope()),
		Remaining: p.program(at(pointer, "remaining"), r.Remaining, answer), Reset: p.program(at(pointer, "reset"), r.Reset, answer),
	}
	switch {
	case (r.Remaining == "") != (r.Reset == ""):
		p.failf(pointer, "remaining and reset belong together")
	case r.Remaining != "" && r.Requests != 0, r.Remaining == "" && (r.Requests < 1 || r.Every == ""):
		p.failf(pointer, "needs requests and every, or remaining and reset")
	case r.Requests != 0:
		out.Every = p.duration(at(pointer, "every"), r.Every)
	}
	return out
}

// inputFormats are the ways in which a form shows text.
func inputFormats() []string {
	return []string{"multiline", "markdown", "html", "email", "url", "code"}
}

func (p *parser) inputs(pointer string, inputs named[manifestInput]) []Input {
	var out []Input
	for _, in := range inputs {
		place := at(pointer, in.name)
		switch {
		case !identifier.MatchString(in.name):
			p.failf(place, "the name of an input has lower-case letters, digits and underscores, and starts with a letter")
		case in.name == LimitInput || in.name == AllInput:
			p.failf(place, "every list has this input: remove it")
		}
		out = append(out, p.input(place, in.name, &in.value))
	}
	return out
}

func (p *parser) properties(pointer string, properties named[manifestInput]) []Input {
	var out []Input
	for _, in := range properties {
		if !propertyName.MatchString(in.name) {
			p.failf(at(pointer, in.name), "the name of a member has letters, digits, underscores and hyphens, and starts with a letter or an underscore")
		}
		out = append(out, p.input(at(pointer, in.name), in.name, &in.value))
	}
	return out
}

func (p *parser) input(pointer, name string, in *manifestInput) Input {
	out := Input{
		Name: name, Type: in.Type, Title: cmp.Or(in.Title, titleOf(name)), Help: in.Help, Required: in.Required, Advanced: in.Advanced,
		Default: in.Default, Example: in.Example, Enum: in.Enum, Pattern: in.Pattern, Format: in.Format, Min: in.Min, Max: in.Max,
		Options: in.Options, Members: in.Fields, Search: in.Search,
	}
	p.oneOf(at(pointer, "type"), in.Type, InputTypes())
	if in.Format != "" {
		p.oneOf(at(pointer, "format"), in.Format, inputFormats())
	}
	if _, err := regexp.Compile(in.Pattern); err != nil {
		p.failf(at(pointer, "pattern"), "is not a regular expression: %v", err)
	}
	if in.Items != nil {
		items := p.input(at(pointer, "items"), "", in.Items)
		out.Items = &items
	}
	if out.Properties = p.properties(at(pointer, "properties"), in.Properties.named); in.Type != "object" && (out.Properties != nil || in.Fields != "") {
		p.failf(pointer, "properties and fields belong to the type object")
	}
	if (in.Type == "list") != (in.Items != nil) {
		p.failf(pointer, "items and the type list belong together")
	}
	if in.Options != "" && !slices.Contains(optionTypes(), in.Type) {
		p.failf(at(pointer, "options"), "belongs to a type of %s; for a list, to its items", strings.Join(optionTypes(), ", "))
	}
	if in.Search && (in.Type != "string" || in.Required) {
		p.failf(at(pointer, "search"), "belongs to an input of the type string that is not required: a dropdown is opened before anybody types")
	}
	if in.Required && in.Default != nil {
		p.failf(pointer, "is required and has a default: remove one of them")
	}
	p.checkSamples(pointer, &out)
	return out
}

// titleOf makes a title of a name: "first_name" becomes "First name".
func titleOf(name string) string {
	words := strings.ReplaceAll(name, "_", " ")
	if words == "" {
		return ""
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

func (p *parser) integrationErrors(m *manifest) []ErrorRule {
	scope := p.shared.scope(map[string][]string{"status": nil, "headers": nil, "body": nil, "link": nil})
	var out []ErrorRule
	for i, rule := range m.Errors {
		out = append(out, p.errorRule(at("/errors", strconv.Itoa(i)), rule, scope))
	}
	return out
}
