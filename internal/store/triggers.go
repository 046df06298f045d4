package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Triggers implements the stores of package trigger.
type Triggers struct {
	db *DB
	workspaceReader
	triggerPoller
}

// In implements trigger.Store.
func (s Triggers) In(tx txn.Tx) trigger.Store { return s.db.in(tx).Triggers }

// updateTriggers updates the rows of a workflow's triggers to match its
// definition. An unchanged trigger keeps its schedule and state; one that becomes
// active starts afresh, since what happened in the meantime must not start runs.
func updateTriggers(tx *transaction, w workflow.Workflow, armed []workflow.Armed) error {
	tx.queue.SubscribersChanged(w.WorkspaceID)
	before, err := subscriptionsOf(tx, w.ID)
	if err != nil {
		return err
	}
	now, err := addSubscriptions(tx, w, armed, before)
	if err != nil {
		return err
	}
	left := make([]string, len(armed))
	for i, t := range armed {
		left[i] = t.ID
	}
	where, args := database.NotIn(`WHERE workflow_id = $1`, "trigger_id", left, []any{w.ID})
	if err := deleteTriggerRows(tx, where, args...); err != nil {
		return err
	}
	for _, t := range armed {
		if err := deleteOldTriggerType(tx, w.ID, t); err != nil {
			return err
		}
		if err := tx.Do(`INSERT INTO triggers (workflow_id, trigger_id, workspace_id, type, version, active, next_at, spec, token, token_hash, subscription)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
			ON CONFLICT (workflow_id, trigger_id) DO UPDATE SET version = excluded.version, active = excluded.active, spec = excluded.spec, subscription = excluded.subscription,
				next_at = CASE WHEN triggers.spec = excluded.spec AND triggers.active = excluded.active THEN triggers.next_at ELSE excluded.next_at END,
				polling = CASE WHEN triggers.spec = excluded.spec AND triggers.active = excluded.active THEN triggers.polling ELSE FALSE END,
				failures = CASE WHEN triggers.spec = excluded.spec AND triggers.active = excluded.active THEN triggers.failures ELSE 0 END,
				state = CASE WHEN triggers.active = excluded.active THEN triggers.state ELSE NULL END`,
			w.ID, t.ID, w.WorkspaceID, t.Type, w.Version, w.State == workflow.Active, database.TimeOrNil(t.NextAt), t.Spec, database.BytesOrNil(t.Token), database.BytesOrNil(t.TokenHash), database.OrNil(now[t.ID])); err != nil {
			return err
		}
		if t.NextAt != nil {
			tx.AfterCommit(func() { tx.db.notify.Scheduled(t.Type, *t.NextAt) })
		}
	}
	return dropSubscriptions(tx, w.WorkspaceID, before, slices.Collect(maps.Values(now)))
}

// triggerTables are the tables with rows of triggers, beside their recorded calls.
var triggerTables = []string{"triggers", "pending_triggers", "trigger_keys"}

func deleteTriggerRows(tx *transaction, where string, args ...any) error {
	for _, table := range triggerTables {
		if err := tx.Do(`DELETE FROM `+table+` `+where, args...); err != nil {
			return err
		}
	}
	_, err := deleteRequests(tx, where, args...)
	return err
}

func deleteOldTriggerType(tx *transaction, workflowID string, t workflow.Armed) error {
	n, err := tx.Exec(`DELETE FROM triggers WHERE workflow_id = $1 AND trigger_id = $2 AND type <> $3`, workflowID, t.ID, t.Type)
	if err != nil || n == 0 {
		return err
	}
	return deleteTriggerRows(tx, `WHERE workflow_id = $1 AND trigger_id = $2`, workflowID, t.ID)
}

func deleteTriggers(tx *transaction, w workflow.Workflow) error {
	before, err := subscriptionsOf(tx, w.ID)
	if err != nil {
		return err
	}
	if err := deleteTriggerRows(tx, `WHERE workflow_id = $1`, w.ID); err != nil {
		return err
	}
	return dropSubscriptions(tx, w.WorkspaceID, before, nil)
}

// fire updates the trigger that starts a run, or returns an error if it may not.
func fire(tx *transaction, r run.Run, f run.Fire) error {
	statement, args := `UPDATE triggers SET fired_at = $1, run_id = $2, failures = 0`, []any{f.At, r.ID, r.WorkflowID, r.Trigger.ID, r.WorkspaceID, true}
	const armed = ` WHERE workflow_id = $3 AND trigger_id = $4 AND workspace_id = $5 AND active = $6`
	if f.Was != nil {
		next := `, next_at = $7`
		args = append(args, database.TimeOrNil(f.Next), *f.Was)
		if f.Next != nil && !f.Next.Equal(*f.Was) { // the end of a poll, not of a part of it
			next = endPoll(7, 9)
			args = append(args, pollAgainAt())
		}
		statement += next + armed + ` AND next_at = $8`
	} else {
		statement += armed
	}
	if err := execOne(tx, statement, args...); err != nil {
		return err
	}
	if f.State != nil {
		if err := tx.Do(`UPDATE triggers SET state = $1 WHERE workflow_id = $2 AND trigger_id = $3`, f.State, r.WorkflowID, r.Trigger.ID); err != nil {
			return err
		}
	}
	if f.NotFired != nil {
		notFired := &trigger.Note{At: f.At, Code: f.NotFired.Code, Message: f.NotFired.Message}
		if err := noteTrigger(tx, trigger.Trigger{WorkspaceID: r.WorkspaceID, WorkflowID: r.WorkflowID, ID: r.Trigger.ID}, nil, notFired); err != nil {
			return err
		}
	}
	if f.EventID != "" {
		if err := execOne(tx, `DELETE FROM pending_triggers WHERE workflow_id = $1 AND trigger_id = $2 AND event_id = $3`, r.WorkflowID, r.Trigger.ID, f.EventID); err != nil {
			return err
		}
	}
	if f.Dedupe == nil {
		return nil
	}
	return claimTriggerKey(tx, r, f)
}

func execOne(tx *transaction, statement string, args ...any) error {
	n, err := tx.Exec(statement, args...)
	if err == nil && n != 1 {
		err = run.ErrNotDue
	}
	return err
}

var triggerRows = mapTable("triggers", "workflow_id trigger_id", func(t *trigger.Trigger) []any {
	failed, notFired := noteOf(&t.Error), noteOf(&t.NotFired)
	return []any{
		"workspace_id", &t.WorkspaceID, "workflow_id", &t.WorkflowID, "trigger_id", &t.ID, "type", &t.Type, "version", &t.Version, "active", &t.Active,
		"next_at", &t.NextAt, "fired_at", &t.FiredAt, "run_id", nullable(&t.RunID),
		"error_at", failed.at, "error_code", failed.code, "error_text", failed.text, "failures", &t.Failures,
		"not_fired_at", notFired.at, "not_fired_code", notFired.code, "not_fired_text", notFired.text,
		"token_hash", unbound(archive.Bytes), "token", &t.SealedToken, "spec", unbound(archive.Text), "state", &t.State, "subscription", nullable(&t.Subscription),
		"polling", local, "poll_again", local, "listening_until", notExported(&t.ListeningUntil),
	}
})

var (
	triggerColumns = triggerRows.columns("t.")
	selectTrigger  = `SELECT ` + triggerColumns + ` FROM triggers t `
)

// note is in place of the three columns of a trigger.Note. Without a time there is none.
type note struct {
	at         converted
	code, text converted
}

func noteOf(into **trigger.Note) note {
	stored, at := *into, new(*time.Time)
	if stored == nil {
		stored = &trigger.Note{}
	}
	decode := func() error {
		if *at != nil {
			stored.At, *into = **at, stored
		}
		return nil
	}
	encode := func() (any, error) {
		if *into == nil {
			return nil, nil
		}
		return stored.At, nil
	}
	return note{converted{archive.Int, at, decode, encode}, nullable(&stored.Code), nullable(&stored.Message)}
}

// knownTrigger returns the condition that this node knows what a trigger of t needs. The
// parameter is the highest level that it knows. Other triggers are for newer nodes.
func knownTrigger(parameter int) string {
	return `NOT EXISTS (SELECT 1 FROM workflow_versions v WHERE v.workflow_id = t.workflow_id AND v.version = t.version AND v.level > $` + strconv.Itoa(parameter) + `)`
}

// Triggers implements trigger.Store.
func (s Triggers) Triggers(ctx context.Context, workspaceID, workflowID string) ([]trigger.Trigger, error) {
	return readList(ctx, s.db, selectTrigger+`WHERE t.workflow_id = $1 AND t.workspace_id = $2 ORDER BY t.trigger_id`, []any{workflowID, workspaceID}, triggerRows.scan)
}

// TriggerByToken implements trigger.Store.
func (s Triggers) TriggerByToken(ctx context.Context, hash []byte) (*trigger.Trigger, error) {
	return readOne(ctx, s.db, selectTrigger+`WHERE t.token_hash = $1`, []any{hash}, triggerRows.scan)
}

// DueTriggers implements trigger.Store.
func (s Triggers) DueTriggers(ctx context.Context, kind string, now time.Time, limit int) ([]trigger.Trigger, error) {
	return readList(ctx, s.db, selectTrigger+`WHERE t.type = $1 AND t.next_at <= $2 AND `+knownTrigger(3)+` ORDER BY t.next_at LIMIT $4`,
		[]any{kind, now, release.Known(), limit}, triggerRows.scan)
}

// NextTrigger implements trigger.Store.
func (s Triggers) NextTrigger(ctx context.Context, kind string) (*time.Time, error) {
	return readValue[*time.Time](ctx, s.db, `SELECT t.next_at FROM triggers t WHERE t.type = $1 AND t.next_at IS NOT NULL AND `+knownTrigger(2)+` ORDER BY t.next_at LIMIT 1`,
		kind, release.Known())
}

// MoveTrigger implements trigger.Store.
func (s Triggers) MoveTrigger(ctx context.Context, m trigger.Move) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (bool, error) { return moveTrigger(tx, m) })
}

func moveTrigger(tx *transaction, m trigger.Move) (bool, error) {
	t := m.Of
	next, args := `, next_at = $6`, []any{m.Failures, t.WorkflowID, t.ID, t.WorkspaceID, database.TimeOrNil(t.NextAt), database.TimeOrNil(m.Next)}
	switch {
	case m.Claims:
		next += `, polling = TRUE, poll_again = FALSE`
	case m.Next != nil:
		next = endPoll(6, 7)
		args = append(args, pollAgainAt())
	}
	n, err := tx.Exec(`UPDATE triggers SET failures = $1`+next+` WHERE workflow_id = $2 AND trigger_id = $3 AND workspace_id = $4 AND next_at = $5`, args...)
	if err != nil || n == 0 {
		return false, err
	}
	if m.State != nil {
		if err := tx.Do(`UPDATE triggers SET state = $1 WHERE workflow_id = $2 AND trigger_id = $3`, m.State, t.WorkflowID, t.ID); err != nil {
			return false, err
		}
	}
	if m.Next != nil {
		tx.AfterCommit(func() { tx.db.notify.Scheduled(t.Type, *m.Next) })
	}
	return true, noteTrigger(tx, t, m.Error, m.NotFired)
}

// pollPause is the time after which a trigger is polled again that was called during a poll.
const pollPause = time.Second

func pollAgainAt() time.Time { return clock.Steady().Add(pollPause) }

// endPoll returns the assignments that end a poll: the next one is due at the time in a
// parameter, or at that in another one if the service has called in the meantime.
func endPoll(next, again int) string {
	return fmt.Sprintf(`, next_at = CASE WHEN poll_again THEN CAST($%d AS BIGINT) ELSE CAST($%d AS BIGINT) END, polling = FALSE, poll_again = FALSE`, again, next)
}

// triggerPoller makes triggers poll, for triggers and for subscriptions.
type triggerPoller struct{ db *DB }

// PollNow implements trigger.Store.
func (s triggerPoller) PollNow(ctx context.Context, t trigger.Trigger, at time.Time) error {
	return s.db.write(ctx, func(tx *transaction) error {
		n, err := tx.Exec(`UPDATE triggers SET poll_again = polling, next_at = CASE WHEN polling OR next_at < $1 THEN next_at ELSE $1 END
			WHERE workflow_id = $2 AND trigger_id = $3 AND workspace_id = $4 AND active = $5 AND next_at IS NOT NULL`, at, t.WorkflowID, t.ID, t.WorkspaceID, true)
		if n == 1 {
			tx.AfterCommit(func() { s.db.notify.Scheduled(t.Type, at) })
		}
		return err
	})
}

// NoteTrigger implements trigger.Store.
func (s Triggers) NoteTrigger(ctx context.Context, t trigger.Trigger, failed, notFired *trigger.Note) error {
	return s.db.write(ctx, func(tx *transaction) error { return noteTrigger(tx, t, failed, notFired) })
}

// noteTrigger records why a trigger failed or did not fire.
func noteTrigger(tx *transaction, t trigger.Trigger, failed, notFired *trigger.Note) error {
	for column, n := range map[string]*trigger.Note{"error": failed, "not_fired": notFired} {
		if n == nil {
			continue
		}
		if err := tx.Do(`UPDATE triggers SET `+column+`_at = $1, `+column+`_code = $2, `+column+`_text = $3
			WHERE workflow_id = $4 AND trigger_id = $5 AND workspace_id = $6`, n.At, n.Code, n.Message, t.WorkflowID, t.ID, t.WorkspaceID); err != nil {
			return err
		}
	}
	return nil
}
