package workflow

import (
	"context"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/action"
)

// Armed is a trigger as it is kept beside its workflow: in step with the
// current definition, ready to fire while the workflow is active.
type Armed struct {
	ID   string
	Type string
	// Spec is its written form. A trigger that stays the same keeps its time.
	Spec string
	// NextAt is when it fires next; nil if not by time, or not now.
	NextAt *time.Time
	// Token is the secret part of its address, sealed, and TokenHash what it is
	// found by. A trigger that has one already keeps it.
	Token     []byte
	TokenHash []byte
}

// Arming makes triggers ready for being kept.
type Arming interface {
	Arm(ctx context.Context, w Workflow, triggers []PlannedTrigger) ([]Armed, error)
}

// PlanTriggers makes the triggers of a definition that was checked ready.
func PlanTriggers(d Definition, catalog *action.Catalog) ([]PlannedTrigger, error) {
	c := &compiler{catalog: catalog, blocks: map[string]string{}}
	out := c.compileTriggers(d.Triggers)
	if len(c.problems) > 0 {
		return nil, fmt.Errorf("%w: %s: %s", ErrCorrupt, c.problems[0].Pointer, c.problems[0].Message)
	}
	return out, nil
}

// arm brings the triggers in step with what a change makes of the workflow.
func (s *Service) arm(ctx context.Context, was State, change *Change) error {
	w := change.Workflow
	if change.NewVersion == nil && was == w.State {
		return nil
	}
	planned, err := PlanTriggers(w.Definition, s.catalog)
	if err != nil {
		return err
	}
	armed, err := s.arming.Arm(ctx, w, planned)
	change.Armed = &armed
	return err
}
