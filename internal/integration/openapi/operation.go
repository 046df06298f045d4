package openapi

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/integration"
)

type builder struct {
	*converter
	operation Operation
	used      names
	inputs    []integration.Input
	path      string
	query     object
	headers   object
	body      object // one member: json, form, multipart or raw
	response  string
}

// operation converts an operation. The error is a leftOut, if a manifest cannot have it.
func (c *converter) operation(o Operation) (*converted, error) {
	c.count = 0
	b := &builder{converter: c, operation: o, used: names{integration.LimitInput: 1, integration.AllInput: 1}}
	if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, o.Method) {
		return nil, leftOut{why: "operations do not have the method " + o.Method}
	}
	if problem := c.checkSecurity(o); problem != "" {
		return nil, leftOut{why: problem}
	}
	if err := b.checkServers(); err != nil {
		return nil, err
	}
	parameters, err := b.parameters()
	if err != nil {
		return nil, err
	}
	if err := b.addPath(parameters); err != nil {
		return nil, err
	}
	for _, p := range parameters {
		if err := b.addParameter(p); err != nil {
			return nil, err
		}
	}
	if err := b.addBody(); err != nil {
		return nil, err
	}
	b.addAnswer()
	return &converted{Operation: o, manifest: b.manifest(), plain: b.isPlain()}, nil
}

// checkServers reports an operation that is not at the server of the others.
func (b *builder) checkServers() error {
	for _, at := range []*node{b.operation.at, b.operation.on} {
		own := firstOf(at.get("servers").list())
		if len(own) == 0 {
			continue
		}
		same := func(n *node) bool {
			given := strings.TrimSuffix(n.get("url").string(), "/")
			return given == b.base.text || given == strings.TrimSuffix(b.base.source, "/")
		}
		if !slices.ContainsFunc(own, same) {
			return leftOut{own[0], "it is at another server: convert it on its own, with that server"}
		}
		return nil
	}
	return nil
}

// isPlain reports whether the operation only reads JSON, without any input.
func (b *builder) isPlain() bool {
	required := slices.ContainsFunc(b.inputs, func(in integration.Input) bool { return in.Required || in.Default != nil })
	return b.operation.Method == http.MethodGet && !required && len(b.body) == 0 && b.response == ""
}

// manifest returns the operation as a manifest has it, with required inputs first.
func (b *builder) manifest() object {
	out := object{{"title", b.operation.Title}}
	about := cmp.Or(plain(b.operation.at.get("description").string(), maxSummary), plain(b.operation.at.get("summary").string(), maxSummary))
	if strings.TrimSuffix(about, ".") != b.operation.Title {
		out.set("summary", about)
	}
	slices.SortStableFunc(b.inputs, func(x, y integration.Input) int {
		return cmp.Compare(rank(x), rank(y))
	})
	var inputs object
	for i := range b.inputs {
		inputs.set(b.inputs[i].Name, inputObject(&b.inputs[i]))
	}
	out.set("input", inputs)
	var request object
	if b.operation.Method != http.MethodGet {
		request.set("method", b.operation.Method)
	}
	request.set("path", b.path)
	request.set("query", b.query)
	request.set("headers", b.headers)
	request = append(request, b.body...)
	request.set("response", b.response)
	out.set("request", request)
	return out
}

func rank(in integration.Input) int {
	switch {
	case in.Required:
		return 0
	case in.Advanced:
		return 2
	}
	return 1
}

// addInput adds an input for something that has a name in the document, and returns its
// name.
func (b *builder) addInput(in integration.Input, wire, where string) string {
	name := identifier(wire, "field")
	if b.used[cut(name, maxName)] > 0 {
		name = where + "_" + name
	}
	in.Name = b.used.unique(name)
	in.Title = cmp.Or(title(wire), plain(wire, maxTitle), "Value")
	b.inputs = append(b.inputs, in)
	return in.Name
}

// addPath adds the path, with an input for each of its parameters.
func (b *builder) addPath(parameters []parameter) error {
	source := b.operation.path
	plainPath := inBraces.ReplaceAllString(source, "x")
	_, err := url.Parse("https://example.com" + plainPath)
	switch {
	case !strings.HasPrefix(source, "/"), err != nil, !isClean(source), strings.Contains(source, "${"), hasDots(plainPath), len(source) > 1000:
		return leftOut{b.operation.on, "its path is not valid"}
	case strings.ContainsAny(plainPath, "?#"):
		return leftOut{b.operation.on, "its path has a query or a fragment"}
	case strings.ContainsAny(plainPath, "{}"):
		return leftOut{b.operation.on, "its path has a brace without another one"}
	}
	var out strings.Builder
	known := map[string]string{}
	last := 0
	for _, at := range inBraces.FindAllStringSubmatchIndex(source, -1) {
		out.WriteString(source[last:at[0]])
		name := source[at[2]:at[3]]
		last = at[1]
		if known[name] == "" {
			text, err := b.pathParameter(name, parameters)
			if err != nil {
				return err
			}
			known[name] = text
		}
		out.WriteString(known[name])
	}
	b.path = out.String() + source[last:]
	return nil
}

// pathParameter adds the input for a parameter of the path, and returns what stands in its
// place.
func (b *builder) pathParameter(name string, parameters []parameter) (string, error) {
	i := slices.IndexFunc(parameters, func(p parameter) bool { return p.in == "path" && p.name == name })
	if i < 0 {
		b.note(b.operation.on, fmt.Sprintf("the document does not describe the parameter %q of the path: its input takes text", clip(name, 60)))
		return "${{ input." + b.addInput(integration.Input{Type: "string", Required: true}, name, "path") + " }}", nil
	}
	p := parameters[i]
	in, err := p.input(b)
	if err != nil {
		return "", err
	}
	in.Required, in.Default = true, nil
	isList := in.Type == "list" || in.Type == "object"
	input := "input." + b.addInput(in, name, "path")
	switch {
	case p.content:
		return "${{ toJSON(" + input + ") }}", nil
	case p.style == "label" && !isList:
		return ".${{ " + input + " }}", nil
	case p.style == "matrix" && !isList && pathText.MatchString(name):
		return ";" + name + "=${{ " + input + " }}", nil
	case p.style == "label" || p.style == "matrix":
		return "", leftOut{p.at, "a path cannot have a list or an object in the style " + p.style}
	case in.Type == "list":
		return "${{ join(" + input + `, ",") }}`, nil
	case in.Type == "object":
		return "${{ " + pairs(input, p.explode) + " }}", nil
	}
	return "${{ " + input + " }}", nil
}
