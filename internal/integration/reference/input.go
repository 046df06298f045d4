package reference

import (
	"fmt"
	"strings"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Input describes an input of an operation, or a setting of a trigger.
type Input struct {
	// Name has the names of the objects and lists around it, as in buttons[].text.
	Name     string
	Type     string
	Required bool
	Title    string
	// Notes are sentences about its values.
	Notes []Note
}

// Note is a sentence. Values are names and values in it, after Text and before End.
type Note struct {
	Text   string
	Values []string
	End    string
}

func (n Note) String() string {
	return strings.TrimSpace(n.Text+" "+strings.Join(n.Values, ", ")) + n.End
}

// describeInputs describes inputs, with the members of objects and lists after each. The
// path is that of the object that has them.
func describeInputs(i *integration.Integration, path string, inputs []integration.Input) []Input {
	var out []Input
	for n := range inputs {
		in := &inputs[n]
		name := path + in.Name
		inner, innerName := in, name
		for inner.Items != nil {
			inner, innerName = inner.Items, innerName+"[]"
		}
		out = append(out, Input{
			Name: name, Type: inputType(in), Required: in.Required, Title: in.Title, Notes: inputNotes(in, listerNotes(i, inner)),
		})
		out = append(out, describeInputs(i, innerName+".", inner.Properties)...)
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
func inputNotes(in *integration.Input, listers []Note) []Note {
	var out []Note
	note := func(text, end string, values ...any) {
		n := Note{Text: text, End: end}
		for _, value := range values {
			n.Values = append(n.Values, inputValue(value))
		}
		out = append(out, n)
	}
	if in.Help != "" {
		note(in.Help, "")
	}
	out = append(out, listers...)
	if in.Enum != nil {
		note("One of", ".", in.Enum...)
	}
	if in.Items != nil && in.Items.Enum != nil {
		note("Each is one of", ".", in.Items.Enum...)
	}
	switch {
	case in.Min != nil && in.Max != nil:
		note(fmt.Sprintf("From %v to %v.", *in.Min, *in.Max), "")
	case in.Min != nil:
		note(fmt.Sprintf("At least %v.", *in.Min), "")
	case in.Max != nil:
		note(fmt.Sprintf("At most %v.", *in.Max), "")
	}
	if in.Pattern != "" {
		note("Must match", ".", in.Pattern)
	}
	if in.Default != nil {
		note("Default:", ".", in.Default)
	}
	if in.Example != nil {
		note("Example:", "", in.Example)
	}
	return out
}

// listerNotes says which operations list the values of an input or the members of an
// object.
func listerNotes(i *integration.Integration, in *integration.Input) []Note {
	var out []Note
	if o, ok := i.FindOperation(in.Options); ok && !o.Hidden {
		out = append(out, Note{Values: []string{operation.Name(i, o)}, End: " lists the values."})
	}
	if o, ok := i.FindOperation(in.Members); ok && !o.Hidden {
		out = append(out, Note{Values: []string{operation.Name(i, o)}, End: " lists the members."})
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
