package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/template"
	"github.com/stepmill/stepmill/internal/trigger"
	triggers "github.com/stepmill/stepmill/internal/trigger/catalog"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Template is a template in the output of commands.
type Template struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Category    string `json:"category"`
	Description string `json:"description"`

	Inputs []template.Input `json:"inputs"`
}

// Templates lists the workflow templates.
func Templates() ([]Template, error) {
	all, err := template.All()
	out := make([]Template, len(all))
	for i, t := range all {
		out[i] = Template{t.Name, t.Title, t.Category, t.Description, t.Inputs}
	}
	return out, err
}

// NewWorkflow creates a draft, from a template with values for its inputs if one is
// named, and returns its id. The name defaults to the title of the template.
func (a *Admin) NewWorkflow(ctx context.Context, workspaceID, from, name string, inputs map[string]string) (string, error) {
	actor, err := a.actor(ctx, workspaceID)
	if err != nil {
		return "", cliError(err)
	}
	workflows, err := a.workflows()
	if err != nil {
		return "", err
	}
	if from == "" {
		made, err := workflows.Import(ctx, actor, workflow.Import{DefaultName: name})
		return made.ID, cliError(err)
	}
	found, err := template.Find(from)
	if err != nil {
		return "", err
	}
	if found == nil {
		return "", fmt.Errorf("there is no template %q: run `stepmill templates` for a list", from)
	}
	values := map[string]json.RawMessage{}
	for name, text := range inputs {
		values[name] = found.TextValue(name, text)
	}
	filled, err := found.Fill(name, values)
	if err != nil {
		return "", inputError(err)
	}
	made, err := workflows.Import(ctx, actor, filled.Workflow)
	return made.ID, inputError(filled.Locate(err))
}

// inputError names inputs as they are given on the command line.
func inputError(err error) error {
	if f, ok := fault.As(err); ok && strings.HasPrefix(f.Message, "/inputs/") {
		return errors.New(strings.ReplaceAll(f.Message, "/inputs/", "--input "))
	}
	return cliError(err)
}

// workflows returns a workflow service whose actions cannot be executed.
func (a *Admin) workflows() (*workflow.Service, error) {
	actions, err := catalog.New(catalog.Deps{})
	if err != nil {
		return nil, err
	}
	types, err := triggers.New(nil)
	if err != nil {
		return nil, err
	}
	secrets := secret.NewService(a.core.store.Secrets, a.core.vault)
	workflows := workflow.NewService(a.core.store.Workflows, actions, types.Format(), nameSource{secrets, a.core.store.Connections}, trigger.NewArming(types, a.core.vault))
	a.core.db.checkNodes(workflows)
	return workflows, nil
}
