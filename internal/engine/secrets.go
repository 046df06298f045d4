package engine

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Values are what expressions can refer to outside of their run.
type Values interface {
	// Open opens the named secrets; those that do not exist are left out.
	Open(ctx context.Context, workspaceID string, names []string) (map[string]string, error)
	Variables(ctx context.Context, workspaceID string) (map[string]any, error)
}

// fetchValues reads what the plan refers to. Secrets are only ever in memory;
// whatever is kept of the run goes through the mask.
func (d *driver) fetchValues(ctx context.Context, plan *workflow.Plan) (vars map[string]any, err error) {
	if plan.Vars {
		if vars, err = d.engine.values.Variables(ctx, d.snap.WorkspaceID); err != nil {
			return nil, err
		}
	}
	if plan.Links { // whoever cannot make one now is asked again; later a step would fail
		if _, err := d.engine.links.Link(ctx, d.snap.WorkspaceID, d.snap.ID, ""); err != nil {
			return nil, err
		}
	}
	if len(plan.Secrets) == 0 {
		return vars, nil
	}
	if d.secrets, err = d.engine.values.Open(ctx, d.snap.WorkspaceID, plan.Secrets); err != nil {
		return nil, err
	}
	values := make([]string, 0, len(d.secrets))
	for _, value := range d.secrets {
		values = append(values, value)
	}
	slices.Sort(values)
	d.mask = mask.New(values)
	return vars, nil
}

// Links makes the links of steps that wait for an answer.
type Links interface {
	Link(ctx context.Context, workspaceID, runID, path string) (expr.Link, error)
}

// makeLinks makes the links that the input of a step refers to. Whoever has one
// can answer: they are hidden like secrets.
func (d *driver) makeLinks(ctx context.Context, p place) (map[string]expr.Link, error) {
	names := p.planned().Links
	if len(names) == 0 {
		return nil, nil
	}
	links, hidden := make(map[string]expr.Link, len(names)), make([]string, 0, len(d.secrets)+2*len(names))
	for _, id := range names {
		link, err := d.engine.links.Link(ctx, d.snap.WorkspaceID, d.snap.ID, p.pathOf(id))
		if err != nil {
			return nil, err
		}
		links[id] = link
		hidden = append(hidden, path.Base(link.Page), path.Base(link.Callback))
	}
	for _, value := range d.secrets {
		hidden = append(hidden, value)
	}
	d.masks[p.step()] = mask.New(hidden)
	return links, nil
}

// maskOf hides what must not be kept of a step.
func (d *driver) maskOf(step *run.Step) *mask.Masker {
	if m, ok := d.masks[step]; ok {
		return m
	}
	return d.mask
}

// missing is the failure of a step that refers to a secret that is gone.
func (d *driver) missing(p place) error {
	for _, name := range p.planned().Secrets {
		if _, ok := d.secrets[name]; !ok {
			return &action.Failure{Code: run.CodeSecretMissing, Message: fmt.Sprintf("there is no secret %q any more", name)}
		}
	}
	return nil
}

// lost tells whether the input that is kept may not be what the action is to be
// given: text that only looks like a secret is covered too.
func (d *driver) lost(step *run.Step) bool {
	return d.mask != nil && d.inputs[step] == nil && bytes.Contains(step.Input, []byte(mask.Cover))
}

// renderSecretly evaluates an input that holds secrets: what the action gets
// stays in memory, what is kept is the same with every secret hidden.
func (d *driver) renderSecretly(ctx context.Context, p place) (map[string]any, error) {
	step := p.step()
	links, err := d.makeLinks(ctx, p)
	if err != nil {
		return nil, err
	}
	p.env.Now = step.StartedAt
	whole := *p.env
	whole.Links = links
	value, err := p.planned().Input.Eval(&whole, expr.Budget{})
	if err != nil {
		return nil, err
	}
	input, _ := value.(map[string]any)
	d.inputs[step] = input
	if step.Input != nil {
		return input, nil
	}
	shown := whole
	shown.Secrets = map[string]string{}
	for name := range d.secrets {
		shown.Secrets[name] = mask.Cover
	}
	// An expression that only works with the real value shows nothing.
	value, err = p.planned().Input.Eval(&shown, expr.Budget{})
	if err != nil {
		value = map[string]any{}
	}
	encoded, err := strictjson.Encode(value)
	if err != nil {
		return nil, err
	}
	step.Input = d.maskOf(step).JSON(encoded)
	d.keep(len(step.Input))
	d.change(step)
	return input, nil
}
