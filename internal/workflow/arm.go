package workflow

import (
	"context"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

// Armed is a trigger as stored with its workflow. It matches the current
// definition and fires while the workflow is active.
type Armed struct {
	ID string
	// Type is the family of its type.
	Type string
	// Spec is the canonical JSON. A trigger whose Spec is unchanged keeps its NextAt.
	Spec string
	// NextAt is when it fires next, by the clock of its type; nil if it has no schedule or
	// is inactive.
	NextAt *time.Time
	// Token is the secret part of the webhook URL, encrypted; TokenHash is used to
	// look it up. A trigger that already has a token keeps it.
	Token     []byte
	TokenHash []byte
	// Hook is how a service calls the trigger; nil if none does.
	Hook *ArmedHook
}

// ArmedHook identifies the subscription that a trigger needs.
type ArmedHook struct {
	// Name is that of the hook of the integration, such as github.events, and Connection
	// the name of the connection.
	Name       string
	Connection string
	// Settings identify the settings of the trigger. They are empty if all triggers with the
	// same connection share a subscription.
	Settings string
}

// DueAt returns the time of day at which a trigger of a type is due whose NextAt is
// known. Polls, also those of services, are due at a steady time, schedules at a time of day.
func DueAt(kind string, nextAt *time.Time) *time.Time {
	switch FamilyOf(kind) {
	case PollTrigger, ServiceTrigger:
		return clock.WallPtr(nextAt)
	}
	return nextAt
}

// Arming prepares triggers for storage.
type Arming interface {
	Arm(ctx context.Context, w Workflow, triggers []CompiledTrigger) ([]Armed, error)
}

// CompileTriggers compiles the triggers of a definition that passed Check.
func CompileTriggers(d Definition, v Vocabulary) ([]CompiledTrigger, error) {
	c := &compiler{catalog: v.Actions, types: v.Types, own: v.own, blocks: map[string]string{}, integrations: map[string]needed{}}
	out := c.compileTriggers(d.Triggers)
	if len(c.problems) > 0 {
		return nil, fmt.Errorf("%w: %s: %s", ErrCorrupt, c.problems[0].Pointer, c.problems[0].Message)
	}
	return out, nil
}

// arm updates the stored triggers if the change affects them.
func (s *Service) arm(ctx context.Context, was State, change *Change) error {
	w := change.Workflow
	if change.NewVersion == nil && was == w.State {
		return nil
	}
	armed, err := s.armed(ctx, w)
	change.Armed = &armed
	return err
}

// armed returns the triggers of a workflow, ready to be stored.
func (s *Service) armed(ctx context.Context, w Workflow) ([]Armed, error) {
	v, err := s.vocabulary(ctx, w.WorkspaceID, w.Definition)
	if err != nil {
		return nil, err
	}
	compiled, err := CompileTriggers(w.Definition, v.stored(s.own))
	if err != nil {
		return nil, err
	}
	return s.arming.Arm(ctx, w, compiled)
}
