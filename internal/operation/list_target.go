package operation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/suggest"
)

const maxSearch = 200

// listTarget is an input whose values or members are listed, by the operation lister with
// the input with.
type listTarget struct {
	service *integration.Integration
	lister  *integration.Operation
	input   *integration.Input
	with    map[string]any
}

// listOwner is the operation of a step, or a trigger, with its inputs.
type listOwner struct {
	name   string
	inputs []integration.Input
}

// resolve finds what lists the values of an input, and what that needs of the step.
func (l *Lists) resolve(ctx context.Context, q ListQuery) (listTarget, error) {
	actions, err := l.actions.In(ctx, q.Workspace, q.Operation, q.Trigger)
	if err != nil {
		return listTarget{}, err
	}
	service, owner, err := actions.listOwner(q)
	if err != nil {
		return listTarget{}, err
	}
	input, err := findInput(owner.inputs, q.Input)
	if err != nil {
		return listTarget{}, err
	}
	name := input.Options
	if name == "" {
		name = input.Members
	}
	lister, ok := service.FindOperation(name)
	if !ok {
		return listTarget{}, fault.Field("/input", "%s of %s is not filled from an account: enter a value", q.Input, owner.name)
	}
	out := listTarget{service: service, lister: lister, input: input}
	if out.with, err = listInput(owner, input, lister, q); err != nil {
		return listTarget{}, err
	}
	return out, out.check()
}

// listOwner returns what has the input, which must be for connections like the one that is used.
func (a *Actions) listOwner(q ListQuery) (service *integration.Integration, owner listOwner, err error) {
	member := "/operation"
	if q.Trigger != "" {
		member = "/trigger"
		service, owner, err = a.listTrigger(q.Trigger)
	} else {
		service, owner, err = a.listOperation(q.Operation)
	}
	if err == nil && q.Integration != service.ConnectedAs() {
		err = fault.Field(member, "%s needs a connection of %s, which %q is not", owner.name, service.Name, q.Connection)
	}
	return service, owner, err
}

func (a *Actions) listOperation(name string) (*integration.Integration, listOwner, error) {
	if service, found, ok := a.find(name); ok {
		return service, listOwner{name, found.Input}, nil
	}
	return nil, listOwner{}, fault.Field("/operation", "there is no operation %q%s", name, suggest.Hint(name, a.Names()))
}

func (a *Actions) listTrigger(name string) (*integration.Integration, listOwner, error) {
	if service, found, ok := a.FindTrigger(name); ok {
		return service, listOwner{name, found.Input}, nil
	}
	return nil, listOwner{}, fault.Field("/trigger", "there is no trigger %q%s", name, suggest.Hint(name, a.TriggerNames()))
}

func findInput(inputs []integration.Input, path string) (*integration.Input, error) {
	var found *integration.Input
	for name := range strings.SplitSeq(path, "/") {
		at := slices.IndexFunc(inputs, func(in integration.Input) bool { return in.Name == name })
		if at < 0 {
			var names []string
			for _, in := range inputs {
				names = append(names, in.Name)
			}
			return nil, fault.Field("/input", "there is no input %q%s", path, suggest.Hint(name, names))
		}
		for found = &inputs[at]; found.Items != nil; {
			found = found.Items
		}
		inputs = found.Properties
	}
	return found, nil
}

// listInput returns the input of the operation that lists: the inputs of the step with
// the same names, the text to search for and how many items to read.
func listInput(owner listOwner, input *integration.Input, lister *integration.Operation, q ListQuery) (map[string]any, error) {
	out := map[string]any{}
	for _, in := range lister.Input {
		switch {
		case in.Search && q.Search != "":
			out[in.Name] = q.Search
		case in.Name == integration.LimitInput:
			out[in.Name] = maxListed
		}
	}
	for _, name := range input.DependsOn {
		value := q.With[name]
		switch {
		case hasExpression(value):
			return nil, fault.Field("/with/"+name, "%s is an expression, which has a value only when the step runs: choose a fixed value first", owner.titleOf(name))
		case value == nil || value == "":
			if slices.Contains(input.Needs, name) {
				return nil, fault.Field("/with/"+name, "choose %s first", owner.titleOf(name))
			}
		default:
			out[name] = value
		}
	}
	switch {
	case q.Search != "" && !input.Searchable:
		return nil, fault.Field("/search", "must be left out: what %s lists cannot be searched", lister.Name)
	case len(q.Search) > maxSearch:
		return nil, fault.Field("/search", "must have at most %d bytes", maxSearch)
	}
	return out, nil
}

func (o listOwner) titleOf(name string) string {
	at := slices.IndexFunc(o.inputs, func(in integration.Input) bool { return in.Name == name })
	return o.inputs[at].Title
}

func hasExpression(value any) bool {
	switch value := value.(type) {
	case string:
		return expr.HasExpression(value)
	case []any:
		return slices.ContainsFunc(value, hasExpression)
	case map[string]any:
		for _, member := range value {
			if hasExpression(member) {
				return true
			}
		}
	}
	return false
}

// check checks the input of the operation that lists, as that of a step is checked before
// it runs: manifests rely on it.
func (t listTarget) check() error {
	name := Name(t.service, t.lister)
	catalog, err := action.NewCatalog(action.Entry{Spec: action.Spec{Name: name, Input: t.lister.InputSchema()}})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var problems []error
	for _, problem := range catalog.Check(name, t.with, func(string) bool { return false }) {
		problems = append(problems, fault.Field("/with"+problem.Pointer, "%s", problem.Message))
	}
	return fault.Fields(problems...)
}
