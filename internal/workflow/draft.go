package workflow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
)

// Unsaved is a definition that is not saved, with the pins that replace step
// outputs when it runs.
type Unsaved struct {
	Definition Definition
	Pinned     Pins
}

// FileIDs returns the ids of the files that the definition and the pins refer to.
func (u Unsaved) FileIDs() []string {
	return append(u.Definition.Files.IDs(), u.Pinned.FileIDs()...)
}

// DraftTest says what to test: the saved definition with Patch applied and, if
// UsePinned is set, the saved pins with Pinned applied.
type DraftTest struct {
	Patch     Patch
	UsePinned bool
	Pinned    PinsPatch
}

// Draft checks a definition so that it can be run without saving it.
func (s *Service) Draft(ctx context.Context, actor auth.Actor, id string, in DraftTest) (Unsaved, error) {
	w, err := s.Get(ctx, actor, id)
	if err != nil {
		return Unsaved{}, err
	}
	d := Unsaved{Definition: w.Definition.patched(in.Patch)}
	if d.Pinned, err = s.draftPins(ctx, actor, in, w); err != nil {
		return Unsaved{}, err
	}
	if err := checkSize(actor, d.Definition); err != nil {
		return Unsaved{}, err
	}
	problems, err := s.check(ctx, actor, w.Definition, &d.Definition)
	if err == nil && len(problems) > 0 {
		err = invalidDefinition(problems)
	}
	return d, err
}

// Pins returns the pins to use for a test.
func (s *Service) Pins(ctx context.Context, actor auth.Actor, id string, in DraftTest) (Pins, error) {
	if !in.UsePinned {
		return nil, nil
	}
	w, err := s.Get(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	return s.draftPins(ctx, actor, in, w)
}

func (s *Service) draftPins(ctx context.Context, actor auth.Actor, in DraftTest, w Workflow) (Pins, error) {
	if !in.UsePinned {
		return nil, nil
	}
	return s.applyPins(ctx, actor, in.Pinned, w.Pinned)
}

// TestStep is a compiled step of a draft with the pins of the steps before it.
type TestStep struct {
	CompiledStep
	Pinned Pins
}

// DraftStep compiles one step of a draft for a test. The other steps must exist
// but need not be valid yet.
func (s *Service) DraftStep(ctx context.Context, actor auth.Actor, id, stepID string, in DraftTest) (TestStep, error) {
	w, err := s.Get(ctx, actor, id)
	if err != nil {
		return TestStep{}, err
	}
	d := w.Definition.patched(in.Patch)
	if err := checkSize(actor, d); err != nil {
		return TestStep{}, err
	}
	d = Definition{Steps: onlyStep(d.Steps, stepID)}
	problems, err := s.check(ctx, actor, Definition{}, &d)
	if err == nil && len(problems) > 0 {
		err = invalidDefinition(problems)
	}
	if err != nil {
		return TestStep{}, err
	}
	v, err := s.vocabulary(ctx, w.WorkspaceID, d)
	if err != nil {
		return TestStep{}, err
	}
	program, problems := v.compile(d)
	if len(problems) > 0 {
		return TestStep{}, fmt.Errorf("compile a definition that passed its check: %s", problems[0].Message)
	}
	step := program.Find(stepID)
	if step == nil {
		return TestStep{}, fault.New(fault.StepNotFound, "workflow %q has no step %q", id, stepID)
	}
	pins, err := s.draftPins(ctx, actor, in, w)
	return TestStep{CompiledStep: *step, Pinned: pins}, err
}

// onlyStep replaces all steps but one with no-ops, so that names and pointers
// stay the same.
func onlyStep(steps []Step, id string) []Step {
	out := make([]Step, len(steps))
	for i, step := range steps {
		step.Needs = wholeNeeds(step.Needs)
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

// wholeNeeds replaces paths in needs by the steps that they lead out of.
func wholeNeeds(needs *[]string) *[]string {
	if needs == nil {
		return nil
	}
	out := []string{}
	for _, need := range *needs {
		if id, _ := SplitNeed(need); !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return &out
}

// InDefinition prefixes the pointers of a definition's problems with
// /definition, the member that contains the definition in the request.
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
