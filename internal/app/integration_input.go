package app

import (
	"fmt"
	"strings"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// showInputs returns inputs of an operation, with the members of objects and lists after
// each. The path is that of the object that has them.
func showInputs(i *integration.Integration, path string, inputs []integration.Input) []OperationInput {
	var out []OperationInput
	for n := range inputs {
		in := &inputs[n]
		name := path + in.Name
		inner, innerName := in, name
		for inner.Items != nil {
			inner, innerName = inner.Items, innerName+"[]"
		}
		out = append(out, OperationInput{
			Name: name, Type: inputType(in), Required: in.Required, Title: in.Title, Notes: inputNotes(in, listerNotes(i, inner)),
		})
		out = append(out, showInputs(i, innerName+".", inner.Properties)...)
	}
	return out
}

func inputType(in *integration.Input) string {
	if in.Items != nil {
		return "list of " + inputType(in.Items)
	}
	return in.Type
}

// inputNotes returns sentences about the values of an input, among them those about their
// listers.
func inputNotes(in *integration.Input, listers []string) []string {
	var out []string
	note := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if in.Help != "" {
		out = append(out, in.Help)
	}
	out = append(out, listers...)
	if in.Enum != nil {
		values := make([]string, len(in.Enum))
		for i, value := range in.Enum {
			values[i] = inputValue(value)
		}
		note("One of %s.", strings.Join(values, ", "))
	}
	switch {
	case in.Min != nil && in.Max != nil:
		note("From %v to %v.", *in.Min, *in.Max)
	case in.Min != nil:
		note("At least %v.", *in.Min)
	case in.Max != nil:
		note("At most %v.", *in.Max)
	}
	if in.Pattern != "" {
		note("Must match %s.", in.Pattern)
	}
	if in.Default != nil {
		note("Default: %s.", inputValue(in.Default))
	}
	if in.Example != nil {
		note("Example: %s", inputValue(in.Example))
	}
	return out
}

// listerNotes says which operations list the values of an input or the members of an
// object.
func listerNotes(i *integration.Integration, in *integration.Input) []string {
	var out []string
	if o, ok := i.FindOperation(in.Options); ok && !o.Hidden {
		out = append(out, operation.Name(i, o)+" lists the values.")
	}
	if o, ok := i.FindOperation(in.Members); ok && !o.Hidden {
		out = append(out, operation.Name(i, o)+" lists the members.")
	}
	return out
}

// inputValue returns a value that a manifest gives as text.
func inputValue(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := strictjson.Encode(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
