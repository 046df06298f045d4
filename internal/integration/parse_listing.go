package integration

import (
	"slices"

	"github.com/stepmill/stepmill/internal/suggest"
)

// optionTypes are the types of the inputs that a dropdown can fill.
func optionTypes() []string { return []string{"string", "integer", "number", "time", "any"} }

// listMappings compiles what the items of a list mean for dropdowns and forms.
func (p *parser) listMappings(pointer string, o *manifestOperation, out *Operation, where place) {
	item := where.scope("item")
	if o.Option != nil {
		option := at(pointer, "option")
		p.require(at(option, "value"), o.Option.Value)
		p.require(at(option, "label"), o.Option.Label)
		out.Option = &Option{p.program(at(option, "value"), o.Option.Value, item), p.program(at(option, "label"), o.Option.Label, item)}
	}
	if o.Field != nil {
		field := at(pointer, "field")
		p.require(at(field, "name"), o.Field.Name)
		p.require(at(field, "type"), o.Field.Type)
		out.Member = &Member{
			Name: p.program(at(field, "name"), o.Field.Name, item), Title: p.program(at(field, "title"), o.Field.Title, item),
			Type: p.program(at(field, "type"), o.Field.Type, item), Required: p.program(at(field, "required"), o.Field.Required, item),
			Options: p.program(at(field, "options"), o.Field.Options, item),
		}
	}
	if (o.Option != nil || o.Field != nil) && out.Calls[len(out.Calls)-1].Items == nil {
		p.failf(pointer, "option and field need a list: add items to the last call")
	}
}

// linkInputs finds the operations that list the values or the members of the inputs of
// an operation or a trigger, and what those need.
func (p *parser) linkInputs(pointer, owner string, inputs []Input, operations []Operation) {
	for i := range inputs {
		in := &inputs[i]
		p.linkInput(at(pointer, in.Name), in, inputLink{owner: owner, beside: inputs, top: in.Name, operations: operations})
	}
}

// inputLink says where an input is: inside the input top of the operation or trigger owner,
// or that input itself.
type inputLink struct {
	owner      string
	beside     []Input // all inputs of the owner
	top        string
	operations []Operation
}

func (p *parser) linkInput(pointer string, in *Input, link inputLink) {
	if in.Options != "" {
		p.linkLister(at(pointer, "options"), in.Options, in, link, func(o *Operation) bool { return o.Option != nil }, "option")
	}
	if in.Members != "" {
		p.linkLister(at(pointer, "fields"), in.Members, in, link, func(o *Operation) bool { return o.Member != nil }, "field")
	}
	for i := range in.Properties {
		property := &in.Properties[i]
		p.linkInput(at(pointer, "properties", property.Name), property, link)
	}
	if in.Items != nil {
		p.linkInput(at(pointer, "items"), in.Items, link)
	}
}

// linkLister checks that an operation can list the values of an input, and sets which
// other inputs that depends on.
func (p *parser) linkLister(pointer, name string, in *Input, link inputLink, lists func(*Operation) bool, member string) {
	at := slices.IndexFunc(link.operations, func(o Operation) bool { return o.Name == name })
	if at < 0 {
		var names []string
		for _, o := range link.operations {
			names = append(names, o.Name)
		}
		p.failf(pointer, "there is no operation %q%s", name, suggest.Hint(name, names))
		return
	}
	lister := &link.operations[at]
	switch {
	case !lists(lister):
		p.failf(pointer, "the operation %s has no %s, which says what its items mean", name, member)
	case slices.ContainsFunc(lister.Calls, func(c Call) bool { return !c.Idempotency.Safe }):
		p.failf(pointer, "the operation %s may have effects, but a form calls it whenever somebody looks: if it only reads, add idempotency: safe to its calls", name)
	}
	for _, needed := range lister.Input {
		switch {
		case needed.Search:
			in.Searchable = true
		case needed.Name == LimitInput || needed.Name == AllInput:
		case needed.Name != link.top && slices.ContainsFunc(link.beside, func(other Input) bool { return other.Name == needed.Name }):
			in.DependsOn = append(in.DependsOn, needed.Name)
			if needed.Required {
				in.Needs = append(in.Needs, needed.Name)
			}
		case needed.Required:
			p.failf(pointer, "the operation %s needs the input %s, which %s does not have", name, needed.Name, link.owner)
		}
	}
}
