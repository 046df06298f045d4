package service

import (
	"context"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/trigger/poll"
	"github.com/stepmill/stepmill/internal/workflow"
)

// timeout is the duration of one poll, which can read several pages.
const timeout = 90 * time.Second

// pausedInterval is how often a trigger is looked at whose integration was changed so that
// it no longer polls.
const pausedInterval = time.Hour

type reader struct {
	values      trigger.Values
	connections trigger.Connections
	operations  *operation.Actions
}

// Interval implements poll.Reader.
func (*reader) Interval(c workflow.CompiledTrigger) time.Duration {
	if schedule := c.Config.(*Config).schedule; schedule != nil {
		return schedule.Interval()
	}
	return pausedInterval
}

// Source implements poll.Reader. A manifest that was corrected reads the same.
func (*reader) Source(t workflow.Trigger) []byte {
	return poll.Hash(fmt.Sprintf("%q %q %q", t.Type, t.Connection, t.With))
}

// IsCalled implements poll.Reader.
func (*reader) IsCalled(c workflow.CompiledTrigger) bool {
	return c.Config.(*Config).trigger.Hook != nil
}

// Read implements poll.Reader.
func (r *reader) Read(ctx context.Context, q poll.Query) (poll.Found, *mask.Masker, error) {
	config := q.Compiled.Config.(*Config)
	if config.trigger.Poll == nil {
		return poll.Found{}, nil, &action.Failure{Code: trigger.CodeCorrupt, Message: "the integration was changed and the trigger no longer looks for something new: save the workflow again"}
	}
	settings, err := config.Settings(ctx, r.values, q.Trigger, q.Compiled, q.Env())
	if err != nil {
		return poll.Found{}, nil, err
	}
	var (
		masker *mask.Masker
		found  operation.Found
	)
	err = r.connections.Use(ctx, q.Trigger.WorkspaceID, q.Compiled.Connection, timeout, func(ctx context.Context, c action.Connection) (err error) {
		masker = c.Mask
		found, err = r.operations.Poll(ctx, operation.Poll{
			Service: config.integration, Trigger: config.trigger, Workspace: q.Trigger.WorkspaceID, Key: q.Trigger.WorkflowID + "/" + q.Trigger.ID,
			With: settings, Now: q.Now, Cursor: q.Cursor, Starting: q.Starting,
		}, c)
		return err
	})
	if err != nil {
		return poll.Found{}, masker, err
	}
	out := poll.Found{Keyed: true, Cursor: found.Cursor, More: found.More, PositionLost: found.PositionLost}
	for _, item := range found.Items {
		out.Items = append(out.Items, poll.Item{Value: item.Payload, Key: poll.KeyOf(item.Key)})
	}
	return out, masker, nil
}
