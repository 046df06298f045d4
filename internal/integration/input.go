package integration

import (
	"bytes"
	"strconv"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// Input is a value that a step gives to an operation.
type Input struct {
	Name     string
	Type     string // see InputTypes
	Title    string
	Help     string
	Required bool
	// Advanced inputs are shown only if somebody asks for them.
	Advanced bool
	Default  any
	Example  any
	Enum     []any
	Pattern  string
	Format   string   // how the form shows text: multiline, markdown …
	Min, Max *float64 // of a number, or of the number of items of a list
	// Items is what a list has, and Properties what an object has; nil for anything.
	Items      *Input
	Properties []Input
	// Options is the operation that lists the values of the input, and Members the one
	// that lists the members of the object. Search inputs take the text that people
	// type into a dropdown.
	Options, Members string
	Search           bool
	// DependsOn are the inputs of the operation that decide what is listed, and Needs
	// those of them without which nothing is. Searchable is set if the list can be
	// searched for text.
	DependsOn, Needs []string
	Searchable       bool
}

// InputTypes returns the types of inputs.
func InputTypes() []string {
	return []string{"string", "integer", "number", "boolean", "time", "object", "list", "file", "any"}
}

// The inputs of every operation that reads a list.
const (
	LimitInput = "limit"
	AllInput   = "all"
	// DefaultLimit is the number of items that are read without either.
	DefaultLimit = 100
)

// listInputs are the inputs that every list has.
func listInputs() []Input {
	lowest := 1.0
	return []Input{
		{Name: LimitInput, Type: "integer", Title: "Limit", Help: "The most items to return.", Default: DefaultLimit, Min: &lowest},
		{Name: AllInput, Type: "boolean", Title: "All", Help: "Return every item, whatever the limit is."},
	}
}

// InputSchema returns the JSON Schema of the input of a step. Its members are in the
// order of the manifest, which is that of the form. What only forms need has names that
// begin with x-.
func (o *Operation) InputSchema() string { return inputSchema(o.Input) }

func inputSchema(inputs []Input) string {
	var out bytes.Buffer
	out.WriteByte('{')
	w := schemaWriter{out: &out}
	w.add("type", "object")
	w.properties(inputs)
	out.WriteByte('}')
	return out.String()
}

// A schemaWriter writes the members of one JSON object.
type schemaWriter struct {
	out   *bytes.Buffer
	begun bool
}

func (w *schemaWriter) name(name string) {
	if w.begun {
		w.out.WriteByte(',')
	}
	w.begun = true
	w.out.WriteString(strconv.Quote(name) + ":")
}

// add writes a member unless its value is nil, false, empty or zero.
func (w *schemaWriter) add(name string, value any) {
	switch v := value.(type) {
	case nil:
		return
	case bool:
		if !v {
			return
		}
	case string:
		if v == "" {
			return
		}
	case []any:
		if len(v) == 0 {
			return
		}
	case []string:
		if len(v) == 0 {
			return
		}
	case *float64:
		if v == nil {
			return
		}
	}
	encoded, err := strictjson.Encode(value)
	if err != nil {
		return // it was decoded from JSON
	}
	w.name(name)
	w.out.Write(encoded)
}

// properties writes the members of an object that has no others.
func (w *schemaWriter) properties(inputs []Input) {
	var required []any
	for _, in := range inputs {
		if in.Required {
			required = append(required, in.Name)
		}
	}
	w.add("required", required)
	w.name("additionalProperties")
	w.out.WriteString("false")
	w.name("properties")
	w.out.WriteByte('{')
	members := schemaWriter{out: w.out}
	for _, in := range inputs {
		members.name(in.Name)
		in.write(w.out)
	}
	w.out.WriteByte('}')
}

func (in *Input) write(out *bytes.Buffer) {
	out.WriteByte('{')
	w := schemaWriter{out: out}
	switch in.Type {
	case "file":
		w.add("format", "file")
	case "time":
		w.add("type", "string")
		w.add("format", "date-time")
	case "list":
		w.add("type", "array")
	case "any":
	default:
		w.add("type", in.Type)
	}
	w.add("title", in.Title)
	w.add("description", in.Help)
	w.add("default", in.Default)
	w.add("enum", in.Enum)
	w.add("pattern", in.Pattern)
	lowest, highest := "minimum", "maximum"
	if in.Type == "list" {
		lowest, highest = "minItems", "maxItems"
	}
	w.add(lowest, in.Min)
	w.add(highest, in.Max)
	if in.Example != nil {
		w.add("examples", []any{in.Example})
	}
	w.add("x-format", in.Format)
	w.add("x-advanced", in.Advanced)
	w.add("x-options", in.Options)
	w.add("x-fields", in.Members)
	w.add("x-search", in.Search)
	w.add("x-depends-on", in.DependsOn)
	w.add("x-needs", in.Needs)
	w.add("x-searchable", in.Searchable)
	if in.Type == "string" && in.Required && in.Enum == nil {
		w.add("minLength", 1)
	}
	if in.Items != nil {
		w.name("items")
		in.Items.write(out)
	}
	if in.Properties != nil {
		w.properties(in.Properties)
	}
	out.WriteByte('}')
}
