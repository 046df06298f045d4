package workflow

import (
	"context"
	"fmt"
	"strings"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
)

// Unsaved is a definition that is not saved, with the pins that stand in for
// steps when it is run.
type Unsaved struct {
	Definition Definition
	Pinned     Pins
}

// Trying says what of a workflow to try out: the saved definition with the
// patch over it, and, if pins are wanted, the saved ones with others over them.
type Trying struct {
	Patch     Patch
	UsePinned bool
	Pinned    PinsPatch
}

// Draft makes a definition ready to be run without saving it.
func (s *Service) Draft(ctx context.Context, actor auth.Actor, id string, in Trying) (Unsaved, error) {
	w, err := s.Get(ctx, actor, id)
	if err != nil {
		return Unsaved{}, err
	}
	d := Unsaved{Definition: w.Definition.with(in.Patch)}
	if d.Pinned, err = in.pins(w); err != nil {
		return Unsaved{}, err
	}
	if err := checkSize(actor, d.Definition); err != nil {
		return Unsaved{}, err
	}
	problems, err := s.check(ctx, actor, d.Definition)
	if err == nil && len(problems) > 0 {
		err = invalid(problems)
	}
	return d, err
}

// Pins are those that count for trying something out.
func (s *Service) Pins(ctx context.Context, actor auth.Actor, id string, in Trying) (Pins, error) {
	if !in.UsePinned {
		return nil, nil
	}
	w, err := s.Get(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	return in.pins(w)
}

func (t Trying) pins(w Workflow) (Pins, error) {
	if !t.UsePinned {
		return nil, nil
	}
	return t.Pinned.Apply(w.Pinned)
}

// TrialStep is a step of a draft, compiled, with the pins for those before it.
type TrialStep struct {
	PlannedStep
	Pinned Pins
}

// DraftStep makes one step of a draft ready to be tried out. The others need
// not be valid yet: it is enough that they are there.
func (s *Service) DraftStep(ctx context.Context, actor auth.Actor, id, stepID string, in Trying) (TrialStep, error) {
	w, err := s.Get(ctx, actor, id)
	if err != nil {
		return TrialStep{}, err
	}
	d := w.Definition.with(in.Patch)
	if err := checkSize(actor, d); err != nil {
		return TrialStep{}, err
	}
	d = Definition{Steps: onlyStep(d.Steps, stepID)}
	problems, err := s.check(ctx, actor, d)
	if err == nil && len(problems) > 0 {
		err = invalid(problems)
	}
	if err != nil {
		return TrialStep{}, err
	}
	plan, problems := Compile(d, s.catalog.Saved())
	if len(problems) > 0 {
		return TrialStep{}, fmt.Errorf("a definition that was checked does not compile: %s", problems[0].Message)
	}
	step := plan.Find(stepID)
	if step == nil {
		return TrialStep{}, fault.New(fault.StepNotFound, "workflow %q has no step %q", id, stepID)
	}
	pins, err := in.pins(w)
	return TrialStep{PlannedStep: *step, Pinned: pins}, err
}

// onlyStep returns the steps with all but one replaced by steps that do
// nothing, in the same places, so that names and pointers stay what they are.
func onlyStep(steps []Step, id string) []Step {
	out := make([]Step, len(steps))
	for i, step := range steps {
		switch {
		case step.ID == id:
			out[i] = step
		case len(step.Steps) > 0 && step.Repeat != nil:
			out[i] = Step{ID: step.ID, Needs: step.Needs, Repeat: &Repeat{Until: "true"}, Steps: onlyStep(step.Steps, id)}
		case len(step.Steps) > 0:
			out[i] = Step{ID: step.ID, Needs: step.Needs, Foreach: "[]", Steps: onlyStep(step.Steps, id)}
		default:
			out[i] = Step{ID: step.ID, Needs: step.Needs, Uses: "data.set", With: []byte(`{"values":{}}`)}
		}
	}
	return out
}

// InDefinition puts the pointers of a definition's problems below the member
// that the definition was given in.
func InDefinition(err error) error {
	f, ok := fault.As(err)
	if !ok {
		return err
	}
	for i := range f.Details {
		if detail := &f.Details[i]; !strings.HasPrefix(detail.Pointer, "/pinned") {
			detail.Pointer = "/definition" + detail.Pointer
		}
	}
	return err
}
