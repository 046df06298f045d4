package template

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictyaml"
	"github.com/stepmill/stepmill/internal/suggest"
	"github.com/stepmill/stepmill/internal/workflow"
)

// reference is how the source of a template refers to an input. It is no expression: it
// is gone before there is a workflow.
var reference = regexp.MustCompile(`\$\(inputs\.([a-z][a-z0-9_]*)\)`)

// Filled is a template with the values of its inputs.
type Filled struct {
	Workflow workflow.Import
	text     *workflow.Text
	places   map[string][]string
}

// Fill returns the workflow that a template becomes with values for its inputs, given as
// JSON by their names. An empty name stands for the title. The error has every value that
// is missing or not valid.
func (t *Template) Fill(name string, given map[string]json.RawMessage) (*Filled, error) {
	values, err := t.values(given)
	if err != nil {
		return nil, err
	}
	source := []byte(t.Source)
	if len(values) > 0 {
		if source, err = strictyaml.Substitute(source, values.replace); err != nil {
			return nil, err
		}
	}
	text, err := workflow.ReadText(string(source))
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = t.Title
	}
	return &Filled{
		Workflow: workflow.Import{
			DefaultName: name,
			Patch:       workflow.Patch{Description: &t.Description, SetDescription: true, Source: &workflow.SourcePatch{Text: text}},
		},
		text: text, places: t.places,
	}, nil
}

// Locate names the inputs that the problems of the workflow are about.
func (f *Filled) Locate(err error) error {
	problem, ok := fault.As(err)
	if !ok || problem.Code != fault.WorkflowInvalid || len(problem.Details) == 0 {
		return err
	}
	var out []error
	for _, detail := range problem.Details {
		inputs := f.places[detail.Pointer]
		if len(inputs) == 0 {
			return f.text.Locate(err)
		}
		out = append(out, fault.Field("/inputs/"+inputs[0], "%s", detail.Message))
	}
	slices.SortFunc(out, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return fault.Fields(slices.CompactFunc(out, func(a, b error) bool { return a.Error() == b.Error() })...)
}

// values are those of inputs, by name: a string, a json.Number or a bool each.
type values map[string]any

func (t *Template) values(given map[string]json.RawMessage) (values, error) {
	out := values{}
	var problems []error
	names := make([]string, len(t.Inputs))
	for i, in := range t.Inputs {
		names[i] = in.Name
		raw := given[in.Name]
		if raw == nil {
			raw = in.Default
		}
		if raw == nil {
			problems = append(problems, in.errorf("is required"))
			continue
		}
		value, err := in.decode(raw)
		out[in.Name] = value
		problems = append(problems, err)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			problems = append(problems, fault.Field("/inputs/"+name, "is not an input of this template%s", suggest.Hint(name, names)))
		}
	}
	return out, fault.Fields(problems...)
}

// replace implements [strictyaml.Replace]. A value that is all of a string keeps its type.
func (v values) replace(_, text string) (any, bool, error) {
	found := reference.FindAllStringSubmatch(text, -1)
	if found == nil {
		return nil, false, nil
	}
	if found[0][0] == text {
		return v[found[0][1]], true, nil
	}
	filled := reference.ReplaceAllStringFunc(text, func(match string) string {
		return fmt.Sprint(v[reference.FindStringSubmatch(match)[1]])
	})
	// Values have no ${{, but the end of one could form it with what follows.
	if strings.Count(filled, "${{") != strings.Count(text, "${{") || strings.Count(filled, "$${{") != strings.Count(text, "$${{") {
		return nil, false, fault.Field("/inputs/"+found[0][1], "must not end with $: it would become an expression; add it in the builder")
	}
	return filled, true, nil
}
