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

// Values reads the values outside of a run that expressions can refer to.
type Values interface {
	// Open decrypts the named secrets. It omits those that do not exist.
	Open(ctx context.Context, workspaceID string, names []string) (map[string]string, error)
	Vars(ctx context.Context, workspaceID string) (map[string]any, error)
}

// fetchValues reads the variables and secrets that the program uses. Secrets are only
// held in memory; everything that is stored is masked.
func (d *driver) fetchValues(ctx context.Context, program *workflow.Program) (vars map[string]any, err error) {
	if program.Vars {
		if vars, err = d.engine.values.Vars(ctx, d.snap.WorkspaceID); err != nil {
			return nil, err
		}
	}
	if program.Links { // fail now, where it is retried; later the step would fail
		if _, err := d.engine.links.Link(ctx, d.snap.WorkspaceID, d.snap.ID, ""); err != nil {
			return nil, err
		}
	}
	if len(program.Secrets) == 0 {
		return vars, nil
	}
	if d.secrets, err = d.engine.values.Open(ctx, d.snap.WorkspaceID, program.Secrets); err != nil {
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

// Links creates the links of steps that wait for an answer.
type Links interface {
	Link(ctx context.Context, workspaceID, runID, path string) (expr.Link, error)
}

// makeLinks creates the links that the input of a step refers to. They are masked
// like secrets, because anyone who has a link can answer.
func (d *driver) makeLinks(ctx context.Context, p stepRef) (map[string]expr.Link, error) {
	names := p.compiled().Links
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

// maskOf returns the mask for everything that is stored of a step.
func (d *driver) maskOf(step *run.Step) *mask.Masker {
	if m, ok := d.masks[step]; ok {
		return m
	}
	return d.mask
}

// checkSecrets fails if a step refers to a secret that no longer exists.
func (d *driver) checkSecrets(p stepRef) error {
	for _, name := range p.compiled().Secrets {
		if _, ok := d.secrets[name]; !ok {
			return &action.Failure{Code: run.CodeSecretMissing, Message: fmt.Sprintf("secret %q no longer exists", name)}
		}
	}
	return nil
}

// inputMasked reports whether the stored input may differ from the real one. Text
// that happens to equal a secret is masked too.
func (d *driver) inputMasked(step *run.Step) bool {
	return d.mask != nil && d.inputs[step] == nil && bytes.Contains(step.Input, []byte(mask.Replacement))
}

// renderWithSecrets evaluates an input that contains secrets. The real input stays in
// memory; the stored one has every secret masked.
func (d *driver) renderWithSecrets(ctx context.Context, p stepRef) (map[string]any, error) {
	step := p.step()
	links, err := d.makeLinks(ctx, p)
	if err != nil {
		return nil, err
	}
	p.env.Now = step.StartedAt
	whole := *p.env
	whole.Links = links
	value, err := p.compiled().Input.Eval(&whole, expr.Budget{})
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
		shown.Secrets[name] = mask.Replacement
	}
	// An expression that only works with the real value is stored as an empty input.
	value, err = p.compiled().Input.Eval(&shown, expr.Budget{})
	if err != nil {
		value = map[string]any{}
	}
	encoded, err := strictjson.Encode(value)
	if err != nil {
		return nil, err
	}
	step.Input = d.maskOf(step).JSON(encoded)
	d.addSize(len(step.Input))
	d.change(step)
	return input, nil
}
