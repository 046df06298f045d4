package trigger

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Arming implements workflow.Arming.
type Arming struct{ vault Sealer }

// NewArming returns an Arming. The vault seals the tokens of webhooks.
func NewArming(vault Sealer) *Arming { return &Arming{vault: vault} }

// Arm returns the rows to store for the triggers of a workflow.
func (a *Arming) Arm(ctx context.Context, w workflow.Workflow, triggers []workflow.CompiledTrigger) ([]workflow.Armed, error) {
	out := []workflow.Armed{}
	for _, t := range triggers {
		if t.Type == workflow.ManualTrigger {
			continue
		}
		spec, err := json.Marshal(t.Trigger)
		if err != nil {
			return nil, err
		}
		armed := workflow.Armed{ID: t.ID, Type: t.Type, Spec: string(spec)}
		if w.State == workflow.Active {
			armed.NextAt = firstTime(w.ID, t, clock.Now())
		}
		if t.Type == workflow.WebhookTrigger {
			token := newToken()
			armed.TokenHash = HashToken(token)
			if armed.Token, err = a.vault.Seal(ctx, tokenRef(w.WorkspaceID, w.ID, t.ID), []byte(token)); err != nil {
				return nil, err
			}
		}
		out = append(out, armed)
	}
	return out, nil
}

// firstTime returns when a time-based trigger fires first after it was armed. A
// poll runs immediately: later responses are compared with the first one.
func firstTime(workflowID string, t workflow.CompiledTrigger, now time.Time) *time.Time {
	switch t.Type {
	case workflow.ScheduleTrigger:
		next := t.Schedule.Next(now).Add(jitter(workflowID, t))
		return &next
	case workflow.PollTrigger:
		return &now
	}
	return nil
}

// jitter returns the offset of a trigger's times. It is constant for a trigger
// and evenly distributed over all triggers.
func jitter(workflowID string, t workflow.CompiledTrigger) time.Duration {
	if t.Jitter <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(workflowID + "/" + t.ID))
	return time.Duration(binary.BigEndian.Uint64(sum[:8]) % uint64(t.Jitter)).Truncate(time.Microsecond)
}
