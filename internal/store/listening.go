package store

import (
	"context"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/trigger"
)

// Listen implements trigger.Store.
func (s Triggers) Listen(ctx context.Context, t trigger.Trigger, atMost int) (bool, error) {
	listening := false
	err := s.db.write(ctx, func(tx *transaction) error {
		n, err := tx.Exec(`UPDATE triggers SET listening_until = $1
			WHERE workflow_id = $2 AND trigger_id = $3 AND workspace_id = $4 AND active = $5 AND token IS NOT NULL`,
			*t.ListeningUntil, t.WorkflowID, t.ID, t.WorkspaceID, false)
		if listening = n == 1; err != nil || !listening {
			return err
		}
		if err := tx.Lock(database.WorkspaceLock(t.WorkspaceID)); err != nil {
			return err
		}
		all, err := database.Number(tx, `SELECT count(*) FROM triggers WHERE workspace_id = $1 AND listening_until > $2`, t.WorkspaceID, clock.Steady())
		if err == nil && all > atMost {
			err = trigger.ErrTooManyListening
		}
		return err
	})
	return listening, err
}

// StopListening implements trigger.Store.
func (s Triggers) StopListening(ctx context.Context, t trigger.Trigger) error {
	return s.db.write(ctx, func(tx *transaction) error {
		return tx.Do(`UPDATE triggers SET listening_until = NULL WHERE workflow_id = $1 AND trigger_id = $2 AND workspace_id = $3`, t.WorkflowID, t.ID, t.WorkspaceID)
	})
}

// SaveTest implements trigger.InboxStore. The condition on listening_until makes one of
// several concurrent calls the test, whichever node they reach.
func (s Triggers) SaveTest(ctx context.Context, t trigger.Trigger, r trigger.Request, atMost int) (bool, error) {
	saved := false
	err := s.db.write(ctx, func(tx *transaction) error {
		n, err := tx.Exec(`UPDATE triggers SET listening_until = NULL
			WHERE workflow_id = $1 AND trigger_id = $2 AND workspace_id = $3 AND active = $4 AND listening_until > $5`,
			t.WorkflowID, t.ID, t.WorkspaceID, false, clock.Steady())
		if saved = n == 1; err != nil || !saved {
			return err
		}
		return saveRequests(tx, t, []trigger.Request{r}, atMost)
	})
	return saved, err
}
