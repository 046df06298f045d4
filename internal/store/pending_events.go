package store

import (
	"context"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/trigger"
)

var pendingTriggersTable = Table{Name: "pending_triggers", Key: "workflow_id trigger_id event_id", Text: "workflow_id trigger_id event_id workspace_id", Int: "next_at"}

func insertPendingEvent(tx *transaction, e event.Event, to trigger.EventFilter) error {
	at := clock.Past(e.At)
	tx.AfterCommit(func() { tx.db.notify.EventPending(at) })
	return tx.Do(`INSERT INTO pending_triggers (workflow_id, trigger_id, event_id, workspace_id, next_at) VALUES ($1, $2, $3, $4, $5)`,
		to.WorkflowID, to.ID, e.ID, e.WorkspaceID, at)
}

func scanEventFilter(r database.Row) (trigger.EventFilter, error) {
	var (
		workflowID, id string
		spec           []byte
	)
	if err := r.Scan(&workflowID, &id, &spec); err != nil {
		return trigger.EventFilter{}, err
	}
	found, err := trigger.ParseEventFilter(workflowID, id, spec)
	if err != nil {
		err = fmt.Errorf("decode the trigger %s of %s: %w", id, workflowID, err)
	}
	return found, err
}

// DuePendingEvents implements trigger.PendingEventStore.
func (s Triggers) DuePendingEvents(ctx context.Context, now time.Time, limit int) ([]trigger.PendingEvent, error) {
	return readList(ctx, s.db, `SELECT `+triggerColumns+`, e.id, e.workspace_id, e.type, e.workflow_id, e.run_id, e.at, e.depth, e.body
		FROM pending_triggers p JOIN triggers t ON t.workflow_id = p.workflow_id AND t.trigger_id = p.trigger_id JOIN events e ON e.id = p.event_id
		WHERE p.next_at <= $1 AND `+knownTrigger(2)+` ORDER BY p.next_at, p.event_id LIMIT $3`, []any{now, release.Known(), limit}, scanPendingEvent)
}

func scanPendingEvent(r database.Row) (trigger.PendingEvent, error) {
	var e event.Event
	var of trigger.Trigger
	err := triggerRows.scanInto(r, &of, &e.ID, &e.WorkspaceID, (*string)(&e.Type), &e.WorkflowID, &e.RunID, &e.At, &e.Depth, &e.Body)
	return trigger.PendingEvent{Of: of, Event: e}, err
}

// NextPendingEvent implements trigger.PendingEventStore.
func (s Triggers) NextPendingEvent(ctx context.Context) (*time.Time, error) {
	return readValue[*time.Time](ctx, s.db, `SELECT p.next_at FROM pending_triggers p JOIN triggers t ON t.workflow_id = p.workflow_id AND t.trigger_id = p.trigger_id
		WHERE `+knownTrigger(1)+` ORDER BY p.next_at LIMIT 1`, release.Known())
}

// SettlePendingEvent implements trigger.PendingEventStore.
func (s Triggers) SettlePendingEvent(ctx context.Context, o trigger.PendingEvent, next *time.Time, notFired trigger.Note) error {
	return s.db.write(ctx, func(tx *transaction) error {
		statement, args := `DELETE FROM pending_triggers WHERE workflow_id = $1 AND trigger_id = $2 AND event_id = $3 AND workspace_id = $4`,
			[]any{o.Of.WorkflowID, o.Of.ID, o.Event.ID, o.Of.WorkspaceID}
		if next != nil {
			statement, args = `UPDATE pending_triggers SET next_at = $5 WHERE workflow_id = $1 AND trigger_id = $2 AND event_id = $3 AND workspace_id = $4`, append(args, *next)
		}
		n, err := tx.Exec(statement, args...)
		if err != nil || n == 0 {
			return err // already settled by another process
		}
		return noteTrigger(tx, o.Of, nil, &notFired)
	})
}
