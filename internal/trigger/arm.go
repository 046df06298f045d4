package trigger

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Arming implements workflow.Arming.
type Arming struct {
	types *Types
	vault Sealer
}

// NewArming returns an Arming. The vault seals the tokens of URLs.
func NewArming(types *Types, vault Sealer) *Arming { return &Arming{types: types, vault: vault} }

// Arm returns the rows to store for the triggers of a workflow.
func (a *Arming) Arm(ctx context.Context, w workflow.Workflow, triggers []workflow.CompiledTrigger) ([]workflow.Armed, error) {
	out := []workflow.Armed{}
	for _, t := range triggers {
		kind := a.types.find(t.Type)
		if kind.NeverFires {
			continue
		}
		spec, err := json.Marshal(t.Trigger)
		if err != nil {
			return nil, err
		}
		armed := workflow.Armed{ID: t.ID, Type: workflow.FamilyOf(t.Type), Spec: string(spec)}
		if w.State == workflow.Active && kind.First != nil {
			if first := kind.First(w.ID, t, clock.Now()); !first.IsZero() {
				armed.NextAt = &first
			}
		}
		if kind.Hook != nil {
			armed.Hook = kind.Hook(t, w.State == workflow.Active)
		}
		if kind.HasURL {
			token := NewToken()
			armed.TokenHash = HashToken(token)
			if armed.Token, err = a.vault.Seal(ctx, tokenRef(w.WorkspaceID, w.ID, t.ID), []byte(token)); err != nil {
				return nil, err
			}
		}
		out = append(out, armed)
	}
	return out, nil
}
