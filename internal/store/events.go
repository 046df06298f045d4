package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

// Events implements event.Store.
type Events struct{ db *DB }

var deliveriesTable = Table{
	Name: "deliveries", Key: "seq", Numbered: true, Text: "id workspace_id webhook_id event_id run_id status",
	Int: "seq attempts next_at created_at finished_at",
}

var eventsTable = Table{
	Name: "events", Key: "seq", Numbered: true, Text: "id workspace_id type workflow_id run_id", Int: "seq at depth", Bool: "sample",
	Bytes: "body",
}

// addEvents adds events that the transaction writes at its end, with a delivery
// for every webhook that subscribes to them at the time of the commit.
func (tx *transaction) addEvents(events ...event.Event) { tx.events = append(tx.events, events...) }

// finalize writes what the transaction has collected, in the order in which all transactions lock:
// workspaces for their load and their events, then the chains of audit entries, which stay locked
// until the commit. In another order, two transactions could wait for each other.
func finalize(ctx context.Context, tx *transaction) error {
	if err := tx.queue.Settle(); err != nil {
		return err
	}
	if err := writeEvents(tx); err != nil {
		return err
	}
	if err := writeAudit(tx); err != nil {
		return err
	}
	return tx.queue.Enqueue(ctx)
}

// writeEvents writes the events of a transaction. They come last, under the
// workspace's lock: that gives them numbers in commit order, and the lock is held
// only for the end of the transaction.
func writeEvents(tx *transaction) error {
	slices.SortStableFunc(tx.events, func(a, b event.Event) int { return strings.Compare(a.WorkspaceID, b.WorkspaceID) })
	for group := range chunkBy(tx.events, func(e event.Event) string { return e.WorkspaceID }) {
		if err := insertEvents(tx, group[0].WorkspaceID, group); err != nil {
			return err
		}
	}
	return nil
}

func insertEvents(tx *transaction, workspaceID string, events []event.Event) error {
	tx.AfterCommit(func() { tx.db.notify.Recorded(workspaceID) })
	if err := tx.Lock(database.WorkspaceLock(workspaceID)); err != nil {
		return err
	}
	subs, err := subscribersOf(tx, workspaceID)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := insertEvent(tx, e, false); err != nil {
			return err
		}
		if err := fanOut(tx, e, subs); err != nil {
			return err
		}
	}
	return nil
}

func insertEvent(tx *transaction, e event.Event, sample bool) error {
	return tx.Do(`INSERT INTO events (id, workspace_id, type, workflow_id, run_id, at, depth, sample, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		e.ID, e.WorkspaceID, string(e.Type), e.WorkflowID, database.OrNil(e.RunID), e.At, e.Depth, sample, e.Body)
}

func insertDelivery(tx *transaction, id, webhookID string, e event.Event, at time.Time) error {
	tx.AfterCommit(tx.db.notify.Deliverable)
	return tx.Do(`INSERT INTO deliveries (id, workspace_id, webhook_id, event_id, run_id, status, attempts, next_at, created_at)
		VALUES ($1, $2, $3, $4, $5, 'pending', 0, $6, $7)`, id, e.WorkspaceID, webhookID, e.ID, database.OrNil(e.RunID), clock.Past(at), at)
}

// EventExtent implements event.Store. It waits for events of the workspace that
// are being written, so that every later event has a number above Newest.
func (s Events) EventExtent(ctx context.Context, workspaceID string, since time.Time) (event.Extent, error) {
	return transact(ctx, s.db, func(tx *transaction) (extent event.Extent, err error) {
		if err := tx.Lock(database.Lock{Kind: database.LockWorkspace, Key: workspaceID, Shared: true}); err != nil {
			return extent, err
		}
		err = tx.Query(`SELECT (SELECT max(seq) FROM events), (SELECT seq FROM events WHERE id >= $1 ORDER BY id LIMIT 1)`,
			[]any{uid.LowerBound(uid.Event, since)}, func(r database.Row) error { return r.Scan(&extent.Newest, &extent.Oldest) })
		if extent.Oldest == 0 {
			extent.Oldest = extent.Newest + 1
		}
		return extent, err
	})
}

const selectEvent = `SELECT seq, id, workspace_id, type, workflow_id, run_id, at, depth, body FROM events `

func scanEvent(r database.Row) (e event.Stored, err error) {
	err = r.Scan(&e.Seq, &e.ID, &e.WorkspaceID, (*string)(&e.Type), &e.WorkflowID, &e.RunID, &e.At, &e.Depth, &e.Body)
	return e, err
}

// EventsAfter implements event.Store.
func (s Events) EventsAfter(ctx context.Context, workspaceID string, want event.Filter, after int64, limit int) (events []event.Stored, upTo int64, err error) {
	statement, args := selectEvent+`WHERE workspace_id = $1 AND NOT sample AND seq > $2`, []any{workspaceID, after, limit}
	bind := func(value string) string {
		args = append(args, value)
		return `$` + strconv.Itoa(len(args))
	}
	if want.WorkflowID != "" {
		statement += ` AND workflow_id = ` + bind(want.WorkflowID)
	}
	if len(want.Types) > 0 {
		var types []string
		for _, name := range want.Types {
			types = append(types, bind(string(name)))
		}
		statement += ` AND type IN (` + strings.Join(types, `, `) + `)`
	}
	err = s.db.read(ctx, func(c database.Conn) error {
		var err error
		if upTo, err = eventsUpTo(c, workspaceID); err != nil {
			return err
		}
		upTo = max(upTo, after) // all events may have been purged
		events, err = database.List(c, statement+` ORDER BY seq LIMIT $3`, args, scanEvent)
		if n := len(events); n == limit {
			upTo = events[n-1].Seq
		}
		return err
	})
	return events, upTo, err
}

// eventsUpTo returns a number that all future events of the workspace will
// exceed: that of its newest event, or of any event so old that everything before
// it is committed. Without the latter, a client that follows a quiet workspace
// would appear to have missed the events of other workspaces.
func eventsUpTo(c database.Conn, workspaceID string) (int64, error) {
	var own, old int64
	err := c.Query(`SELECT (SELECT max(seq) FROM events WHERE workspace_id = $1), (SELECT seq FROM events WHERE id < $2 ORDER BY id DESC LIMIT 1)`,
		[]any{workspaceID, uid.LowerBound(uid.Event, clock.Now().Add(-maxCommitDelay))}, func(r database.Row) error { return r.Scan(&own, &old) })
	return max(own, old), err
}

// Events implements event.Store. It scans one range of one index; conditions
// without an index are checked row by row.
func (s Events) Events(ctx context.Context, workspaceID string, want event.Query, page paging.Request) (paging.Page[event.Stored], error) {
	return view(ctx, s.db, func(c database.Conn) (found paging.Page[event.Stored], err error) {
		from, below, err := eventRange(c, want)
		if err != nil {
			return found, err
		}
		if after, err := strconv.ParseInt(page.After, 10, 64); err == nil {
			below = min(below, after)
		}
		statement, args := selectEvent+`WHERE workspace_id = $1 AND NOT sample AND seq >= $2 AND seq < $3`, []any{workspaceID, from, below, maxScanned}
		if want.RunID != "" {
			statement, args = statement+` AND run_id = $5`, append(args, want.RunID)
		}
		found, err = scanPage(c, statement+` ORDER BY seq DESC LIMIT $4`, args, page.Limit,
			func(e event.Stored) string { return strconv.FormatInt(e.Seq, 10) },
			func(r database.Row) (event.Stored, bool, error) {
				e, err := scanEvent(r)
				return e, want.Matches(e.Event), err
			})
		return found, err
	})
}

// maxCommitDelay is longer than it can take from creating an event to its commit,
// which assigns the number.
const maxCommitDelay = time.Hour

// eventRange returns the range [from, below) of numbers that events in a time
// span have. Their ids contain the time.
func eventRange(c database.Conn, want event.Query) (from, below int64, err error) {
	below = 1<<63 - 1
	if err := c.Query(`SELECT seq FROM events WHERE id < $1 ORDER BY id DESC LIMIT 1`, []any{uid.LowerBound(uid.Event, want.After.Add(-maxCommitDelay))},
		func(r database.Row) error { return r.Scan(&from) }); err != nil {
		return 0, 0, err
	}
	if want.Before != nil {
		err = c.Query(`SELECT seq FROM events WHERE id >= $1 ORDER BY id LIMIT 1`, []any{uid.LowerBound(uid.Event, want.Before.Add(maxCommitDelay))},
			func(r database.Row) error { return r.Scan(&below) })
	}
	return from, below, err
}

// PurgeOld deletes up to limit rows of each kind that are past their retention:
// deliveries with their attempts, events and deleted webhooks. It finds them in key
// order, which is the order of their age. An event stays while it has a delivery
// or a trigger that has yet to fire on it. It returns true if there may be more.
func (s Events) PurgeOld(ctx context.Context, events time.Time, limit int) (bool, error) {
	const oldest = `(SELECT id FROM deliveries ORDER BY id LIMIT $2)`
	return transact(ctx, s.db, func(tx *transaction) (more bool, err error) {
		if err := tx.Do(`DELETE FROM delivery_attempts WHERE delivery_id IN (SELECT id FROM deliveries WHERE created_at < $1 AND id IN `+oldest+`)`,
			events, limit); err != nil {
			return more, err
		}
		for _, purge := range []struct {
			statement string
			args      []any
		}{
			{`DELETE FROM deliveries WHERE created_at < $1 AND id IN ` + oldest, []any{events, limit}},
			{`DELETE FROM events WHERE seq IN (SELECT seq FROM events e WHERE id < $3 AND at < $1
				AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.id)
				AND NOT EXISTS (SELECT 1 FROM pending_triggers p WHERE p.event_id = e.id) ORDER BY id LIMIT $2)`, []any{events, limit, uid.LowerBound(uid.Event, events)}},
			{`DELETE FROM webhooks WHERE id IN (SELECT id FROM webhooks WHERE deleted_at < $1 LIMIT $2)`, []any{events, limit}},
		} {
			n, err := tx.Exec(purge.statement, purge.args...)
			if err != nil {
				return more, err
			}
			more = more || n == int64(limit)
		}
		return more, nil
	})
}
