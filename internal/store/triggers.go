package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// arm brings the rows of a workflow's triggers in step with it. A trigger that
// stays as it is keeps its time and its state; one that becomes active begins
// anew, since what happens meanwhile starts nothing.
func (s *Store) arm(u *unit, w workflow.Workflow, armed []workflow.Armed) error {
	u.audienceChanged(w.WorkspaceID)
	left := make([]string, len(armed))
	for i, t := range armed {
		left[i] = t.ID
	}
	for _, table := range triggerTables {
		statement, args := without(`DELETE FROM `+table+` WHERE workflow_id = $1`, "trigger_id", left, []any{w.ID})
		if err := u.Do(statement, args...); err != nil {
			return err
		}
	}
	for _, t := range armed {
		if err := replace(u, w.ID, t); err != nil {
			return err
		}
		if err := u.Do(`INSERT INTO triggers (workflow_id, trigger_id, workspace_id, type, version, active, next_at, spec, token, token_hash)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
			ON CONFLICT (workflow_id, trigger_id) DO UPDATE SET version = excluded.version, active = excluded.active, spec = excluded.spec,
				next_at = CASE WHEN triggers.spec = excluded.spec AND triggers.active = excluded.active THEN triggers.next_at ELSE excluded.next_at END,
				failures = CASE WHEN triggers.spec = excluded.spec AND triggers.active = excluded.active THEN triggers.failures ELSE 0 END,
				state = CASE WHEN triggers.active = excluded.active THEN triggers.state ELSE NULL END`,
			w.ID, t.ID, w.WorkspaceID, t.Type, w.Version, w.State == workflow.Active, timeOrNil(t.NextAt), t.Spec, bytesOrNil(t.Token), bytesOrNil(t.TokenHash)); err != nil {
			return err
		}
		if t.NextAt != nil {
			u.afterCommit(func() { s.notify.Scheduled(t.Type, *t.NextAt) })
		}
	}
	return nil
}

// triggerTables are those with rows of triggers.
var triggerTables = []string{"triggers", "occasions", "trigger_keys", "hook_requests"}

// replace removes what is kept of a trigger that has another type now.
func replace(u *unit, workflowID string, t workflow.Armed) error {
	n, err := u.Exec(`DELETE FROM triggers WHERE workflow_id = $1 AND trigger_id = $2 AND type <> $3`, workflowID, t.ID, t.Type)
	if err != nil || n == 0 {
		return err
	}
	for _, table := range triggerTables {
		if err := u.Do(`DELETE FROM `+table+` WHERE workflow_id = $1 AND trigger_id = $2`, workflowID, t.ID); err != nil {
			return err
		}
	}
	return nil
}

// disarm removes all that the triggers of a workflow have.
func disarm(u *unit, workflowID string) error {
	for _, table := range triggerTables {
		if err := u.Do(`DELETE FROM `+table+` WHERE workflow_id = $1`, workflowID); err != nil {
			return err
		}
	}
	return nil
}

// fire writes what a trigger changes of itself when it starts a run, or fails
// when it may not.
func fire(u *unit, r run.Run, f run.Fire) error {
	statement, args := `UPDATE triggers SET fired_at = $1, run_id = $2, failures = 0`, []any{f.At, r.ID, r.WorkflowID, r.Trigger.ID, r.WorkspaceID, true}
	const armed = ` WHERE workflow_id = $3 AND trigger_id = $4 AND workspace_id = $5 AND active = $6`
	if f.Was != nil {
		statement, args = statement+`, next_at = $7`+armed+` AND next_at = $8`, append(args, timeOrNil(f.Next), *f.Was)
	} else {
		statement += armed
	}
	if err := exactly(u, statement, args...); err != nil {
		return err
	}
	if f.State != nil {
		if err := u.Do(`UPDATE triggers SET state = $1 WHERE workflow_id = $2 AND trigger_id = $3`, f.State, r.WorkflowID, r.Trigger.ID); err != nil {
			return err
		}
	}
	if f.Idle != nil {
		idle := &trigger.Note{At: f.At, Code: f.Idle.Code, Message: f.Idle.Message}
		if err := note(u, trigger.Trigger{WorkspaceID: r.WorkspaceID, WorkflowID: r.WorkflowID, ID: r.Trigger.ID}, nil, idle); err != nil {
			return err
		}
	}
	if f.EventID != "" {
		if err := exactly(u, `DELETE FROM occasions WHERE workflow_id = $1 AND trigger_id = $2 AND event_id = $3`, r.WorkflowID, r.Trigger.ID, f.EventID); err != nil {
			return err
		}
	}
	if f.Dedupe == nil {
		return nil
	}
	return takeKey(u, r, f)
}

// exactly is for a write that has to change one row.
func exactly(u *unit, statement string, args ...any) error {
	n, err := u.Exec(statement, args...)
	if err == nil && n != 1 {
		err = run.ErrNotArmed
	}
	return err
}

// takeKey notes the key of a call, or tells which run had it.
func takeKey(u *unit, r run.Run, f run.Fire) error {
	n, err := u.Exec(`INSERT INTO trigger_keys (workflow_id, trigger_id, hash, run_id, expires_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (workflow_id, trigger_id, hash) DO UPDATE SET run_id = excluded.run_id, expires_at = excluded.expires_at
		WHERE trigger_keys.expires_at <= $6`, r.WorkflowID, r.Trigger.ID, f.Dedupe.Hash, r.ID, f.Dedupe.Until, f.At)
	if err != nil || n == 1 {
		return err
	}
	first, err := one(u, `SELECT run_id FROM trigger_keys WHERE workflow_id = $1 AND trigger_id = $2 AND hash = $3`,
		[]any{r.WorkflowID, r.Trigger.ID, f.Dedupe.Hash}, scanText)
	if err != nil || first == nil {
		return err
	}
	return &run.DuplicateError{RunID: *first}
}

const triggerColumns = `t.workspace_id, t.workflow_id, t.trigger_id, t.type, t.version, t.active, t.next_at, t.fired_at, t.run_id,
	t.error_at, t.error_code, t.error_text, t.failures, t.idle_at, t.idle_code, t.idle_text, t.token, t.state`

const selectTrigger = `SELECT ` + triggerColumns + ` FROM triggers t `

func scanTrigger(r Row) (trigger.Trigger, error) { return scanTriggerAnd(r) }

// scanTriggerAnd scans the columns of a trigger and those after them.
func scanTriggerAnd(r Row, more ...any) (trigger.Trigger, error) {
	var (
		t                trigger.Trigger
		failed, idle     trigger.Note
		failedAt, idleAt *time.Time
	)
	err := r.Scan(append([]any{
		&t.WorkspaceID, &t.WorkflowID, &t.ID, &t.Type, &t.Version, &t.Active, &t.NextAt, &t.FiredAt, &t.RunID,
		&failedAt, &failed.Code, &failed.Message, &t.Failures, &idleAt, &idle.Code, &idle.Message, &t.SealedToken, &t.State,
	}, more...)...)
	if failedAt != nil {
		failed.At, t.Error = *failedAt, &failed
	}
	if idleAt != nil {
		idle.At, t.Idle = *idleAt, &idle
	}
	return t, err
}

// Triggers implements trigger.Store.
func (s *Store) Triggers(ctx context.Context, workspaceID, workflowID string) ([]trigger.Trigger, error) {
	var found []trigger.Trigger
	err := s.read(ctx, func(c Conn) (err error) {
		found, err = list(c, selectTrigger+`WHERE t.workflow_id = $1 AND t.workspace_id = $2 ORDER BY t.trigger_id`, []any{workflowID, workspaceID}, scanTrigger)
		return err
	})
	return found, err
}

// TriggerByToken implements trigger.Store.
func (s *Store) TriggerByToken(ctx context.Context, hash []byte) (*trigger.Trigger, error) {
	var found *trigger.Trigger
	err := s.read(ctx, func(c Conn) (err error) {
		found, err = one(c, selectTrigger+`WHERE t.token_hash = $1`, []any{hash}, scanTrigger)
		return err
	})
	return found, err
}

// DueTriggers implements trigger.Store.
func (s *Store) DueTriggers(ctx context.Context, kind string, now time.Time, limit int) ([]trigger.Trigger, error) {
	var due []trigger.Trigger
	err := s.read(ctx, func(c Conn) (err error) {
		due, err = list(c, selectTrigger+`WHERE t.type = $1 AND t.next_at <= $2 ORDER BY t.next_at LIMIT $3`, []any{kind, now, limit}, scanTrigger)
		return err
	})
	return due, err
}

// NextTrigger implements trigger.Store.
func (s *Store) NextTrigger(ctx context.Context, kind string) (*time.Time, error) {
	var next *time.Time
	err := s.read(ctx, func(c Conn) error {
		return c.Query(`SELECT min(next_at) FROM triggers WHERE type = $1 AND next_at IS NOT NULL`, []any{kind}, func(r Row) error { return r.Scan(&next) })
	})
	return next, err
}

// MoveTrigger implements trigger.Store.
func (s *Store) MoveTrigger(ctx context.Context, m trigger.Move) (bool, error) {
	moved := false
	err := s.write(ctx, func(u *unit) error {
		var err error
		moved, err = s.moveTrigger(u, m)
		return err
	})
	return moved, err
}

func (s *Store) moveTrigger(u *unit, m trigger.Move) (bool, error) {
	t := m.Of
	n, err := u.Exec(`UPDATE triggers SET next_at = $1, failures = $2 WHERE workflow_id = $3 AND trigger_id = $4 AND workspace_id = $5 AND next_at = $6`,
		timeOrNil(m.Next), m.Failures, t.WorkflowID, t.ID, t.WorkspaceID, timeOrNil(t.NextAt))
	if err != nil || n == 0 {
		return false, err
	}
	if m.State != nil {
		if err := u.Do(`UPDATE triggers SET state = $1 WHERE workflow_id = $2 AND trigger_id = $3`, m.State, t.WorkflowID, t.ID); err != nil {
			return false, err
		}
	}
	if m.Next != nil {
		u.afterCommit(func() { s.notify.Scheduled(t.Type, *m.Next) })
	}
	return true, note(u, t, m.Error, m.Idle)
}

// NoteTrigger implements trigger.Store.
func (s *Store) NoteTrigger(ctx context.Context, of trigger.Trigger, failed, idle *trigger.Note) error {
	return s.write(ctx, func(u *unit) error { return note(u, of, failed, idle) })
}

// note records what went wrong with a trigger, and why it did not fire.
func note(u *unit, t trigger.Trigger, failed, idle *trigger.Note) error {
	for column, n := range map[string]*trigger.Note{"error": failed, "idle": idle} {
		if n == nil {
			continue
		}
		if err := u.Do(`UPDATE triggers SET `+column+`_at = $1, `+column+`_code = $2, `+column+`_text = $3
			WHERE workflow_id = $4 AND trigger_id = $5 AND workspace_id = $6`, n.At, n.Code, n.Message, t.WorkflowID, t.ID, t.WorkspaceID); err != nil {
			return err
		}
	}
	return nil
}
