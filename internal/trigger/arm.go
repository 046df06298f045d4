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

// Arming is a workflow.Arming.
type Arming struct{ vault Sealer }

// NewArming makes triggers ready; the vault seals the tokens of webhooks.
func NewArming(vault Sealer) *Arming { return &Arming{vault: vault} }

// Arm implements workflow.Arming.
func (a *Arming) Arm(ctx context.Context, w workflow.Workflow, triggers []workflow.PlannedTrigger) ([]workflow.Armed, error) {
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
			armed.NextAt = first(w.ID, t, clock.Now())
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

// first is when a trigger that fires by time does so after it was armed. A poll
// asks at once: that first answer is what later ones are compared with.
func first(workflowID string, t workflow.PlannedTrigger, now time.Time) *time.Time {
	switch t.Type {
	case workflow.ScheduleTrigger:
		next := t.Schedule.Next(now).Add(jitter(workflowID, t))
		return &next
	case workflow.PollTrigger:
		return &now
	}
	return nil
}

// jitter is by how much the times of a trigger are moved: always the same for
// one trigger, spread evenly over all.
func jitter(workflowID string, t workflow.PlannedTrigger) time.Duration {
	if t.Jitter <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(workflowID + "/" + t.ID))
	return time.Duration(binary.BigEndian.Uint64(sum[:8]) % uint64(t.Jitter)).Truncate(time.Microsecond)
}
