package engine

import (
	"bytes"
	"fmt"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// renderSwitch evaluates the conditions of a switch and stores their results as its input. After
// the first that is true, the others are evaluated only if every path may be taken: a
// condition may well rely on those before it being false.
func (d *driver) renderSwitch(p stepRef) error {
	step, compiled := p.step(), p.compiled()
	if step.Input != nil && !d.secrets.inputMasked(step) {
		return nil
	}
	if err := d.secrets.check(p); err != nil {
		return err
	}
	decided := false
	paths := make([]any, len(compiled.Switch.Paths))
	for i, path := range compiled.Switch.Paths {
		shown := map[string]any{"id": path.ID}
		if path.Name != "" {
			shown["name"] = path.Name
		}
		if !decided {
			p.env.Now, p.env.Seed = step.StartedAt, d.state.seedOf(step.Path, fmt.Sprintf("with/paths/%d/when", i))
			holds, err := path.When.EvalBool(p.env, expr.Budget{})
			if err != nil {
				return err
			}
			shown["when"], decided = holds, holds && !compiled.Switch.All
		}
		paths[i] = shown
	}
	whole := map[string]any{"paths": paths}
	if compiled.Switch.Else != "" {
		whole["else"] = compiled.Switch.Else
	}
	if compiled.Switch.All {
		whole["match"] = "all"
	}
	input, err := strictjson.Encode(whole)
	if err != nil {
		return err
	}
	if step.Input == nil {
		d.state.setInput(step, d.secrets.maskOf(step).JSON(input))
	}
	if !bytes.Equal(step.Input, input) {
		d.secrets.inputs[step] = whole
	}
	return nil
}
