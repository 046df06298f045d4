package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

// record has a unit end with events, and with one delivery of each for every
// webhook that wants it: the webhooks that exist at this commit.
func (u *unit) record(events ...event.Event) { u.events = append(u.events, events...) }

// seal writes what a unit ends with.
func (s *Store) seal(ctx context.Context, u *unit) error {
	for _, runID := range u.waking {
		if err := s.wakeInCluster(u, runID); err != nil {
			return err
		}
	}
	if err := s.settleLoads(u); err != nil {
		return err
	}
	if err := s.renumberAudiences(u); err != nil {
		return err
	}
	if err := s.writeEvents(u); err != nil {
		return err
	}
	return s.hand(ctx, u)
}

// writeEvents writes the events of a unit. They come last, under the lock of
// their workspace: so their numbers are in the order of the commits, and nobody
// is kept waiting for longer than the end of a unit takes.
func (s *Store) writeEvents(u *unit) error {
	slices.SortStableFunc(u.events, func(a, b event.Event) int { return strings.Compare(a.WorkspaceID, b.WorkspaceID) })
	for len(u.events) > 0 {
		workspaceID := u.events[0].WorkspaceID
		n := slices.IndexFunc(u.events, func(e event.Event) bool { return e.WorkspaceID != workspaceID })
		if n < 0 {
			n = len(u.events)
		}
		if err := s.insertEvents(u, workspaceID, u.events[:n]); err != nil {
			return err
		}
		u.events = u.events[n:]
	}
	return nil
}

func (s *Store) insertEvents(u *unit, workspaceID string, events []event.Event) error {
	u.afterCommit(func() { s.notify.Recorded(workspaceID) })
	if err := lockWorkspace(u, workspaceID); err != nil {
		return err
	}
	to, err := s.audienceOf(u, workspaceID)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := insertEvent(u, e, false); err != nil {
			return err
		}
		if err := s.tell(u, e, to); err != nil {
			return err
		}
	}
	return nil
}

func insertEvent(u *unit, e event.Event, sample bool) error {
	err := u.Do(`INSERT INTO events (id, workspace_id, type, workflow_id, run_id, at, depth, sample, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		e.ID, e.WorkspaceID, string(e.Type), e.WorkflowID, orNil(e.RunID), e.At, e.Depth, sample, e.Body)
	return err
}

// insertDelivery puts an event on its way to a webhook.
func (s *Store) insertDelivery(u *unit, id, webhookID string, e event.Event, at time.Time) error {
	u.afterCommit(s.notify.Deliverable)
	err := u.Do(`INSERT INTO deliveries (id, workspace_id, webhook_id, event_id, run_id, status, attempts, next_at, created_at)
		VALUES ($1, $2, $3, $4, $5, 'pending', 0, $6, $7)`, id, e.WorkspaceID, webhookID, e.ID, orNil(e.RunID), at, at)
	return err
}

// EventExtent implements event.Store. Events of the workspace that are being
// written are waited for: what follows the newest number is still to come.
func (s *Store) EventExtent(ctx context.Context, workspaceID string, since time.Time) (event.Extent, error) {
	var kept event.Extent
	err := s.write(ctx, func(u *unit) error {
		kept = event.Extent{} // also when the unit runs again
		if err := u.Lock(Lock{Kind: LockWorkspace, Key: workspaceID, Shared: true}); err != nil {
			return err
		}
		err := u.Query(`SELECT (SELECT max(seq) FROM events), (SELECT seq FROM events WHERE id >= $1 ORDER BY id LIMIT 1)`,
			[]any{uid.Least(uid.Event, since)}, func(r Row) error { return r.Scan(&kept.Newest, &kept.Oldest) })
		if kept.Oldest == 0 {
			kept.Oldest = kept.Newest + 1
		}
		return err
	})
	return kept, err
}

const selectEvent = `SELECT seq, id, workspace_id, type, workflow_id, run_id, at, depth, body FROM events `

func scanEvent(r Row) (e event.Stored, err error) {
	err = r.Scan(&e.Seq, &e.ID, &e.WorkspaceID, (*string)(&e.Type), &e.WorkflowID, &e.RunID, &e.At, &e.Depth, &e.Body)
	return e, err
}

// EventsAfter implements event.Store.
func (s *Store) EventsAfter(ctx context.Context, workspaceID string, want event.Filter, after int64, limit int) (events []event.Stored, upTo int64, err error) {
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
	err = s.read(ctx, func(c Conn) error {
		var err error
		if upTo, err = eventsUpTo(c, workspaceID); err != nil {
			return err
		}
		upTo = max(upTo, after) // all may be too old to be kept
		events, err = list(c, statement+` ORDER BY seq LIMIT $3`, args, scanEvent)
		if n := len(events); n == limit {
			upTo = events[n-1].Seq
		}
		return err
	})
	return events, upTo, err
}

// eventsUpTo is a number that no event of the workspace still to be written is
// below: that of its newest one, or of any that is so old that everything from
// before it is written. Without the latter, who follows a quiet workspace would
// seem to have missed what happened elsewhere.
func eventsUpTo(c Conn, workspaceID string) (int64, error) {
	var own, old int64
	err := c.Query(`SELECT (SELECT max(seq) FROM events WHERE workspace_id = $1), (SELECT seq FROM events WHERE id < $2 ORDER BY id DESC LIMIT 1)`,
		[]any{workspaceID, uid.Least(uid.Event, clock.Now().Add(-commitTime))}, func(r Row) error { return r.Scan(&own, &old) })
	return max(own, old), err
}

// Events implements event.Store. The list is one range of one index; what no
// index knows is compared row by row.
func (s *Store) Events(ctx context.Context, workspaceID string, want event.Query, page paging.Request) (paging.Page[event.Stored], error) {
	var found paging.Page[event.Stored]
	err := s.read(ctx, func(c Conn) error {
		from, below, err := eventSpan(c, want)
		if err != nil {
			return err
		}
		if after, err := strconv.ParseInt(page.After, 10, 64); err == nil {
			below = min(below, after)
		}
		statement, args := selectEvent+`WHERE workspace_id = $1 AND NOT sample AND seq >= $2 AND seq < $3`, []any{workspaceID, from, below, maxLooked}
		if want.RunID != "" {
			statement, args = statement+` AND run_id = $5`, append(args, want.RunID)
		}
		found, err = walk(c, statement+` ORDER BY seq DESC LIMIT $4`, args, page.Limit,
			func(e event.Stored) string { return strconv.FormatInt(e.Seq, 10) },
			func(r Row) (event.Stored, bool, error) {
				e, err := scanEvent(r)
				return e, want.Matches(e.Event), err
			})
		return err
	})
	return found, err
}

// commitTime is longer than it can take from the making of an event to its
// commit, which is what gives it its number.
const commitTime = time.Hour

// eventSpan is the range of numbers that the events of a time have: from the
// first on, up to but not including the second. The time is in their ids.
func eventSpan(c Conn, want event.Query) (from, below int64, err error) {
	below = 1<<63 - 1
	if err := c.Query(`SELECT seq FROM events WHERE id < $1 ORDER BY id DESC LIMIT 1`, []any{uid.Least(uid.Event, want.After.Add(-commitTime))},
		func(r Row) error { return r.Scan(&from) }); err != nil {
		return 0, 0, err
	}
	if want.Before != nil {
		err = c.Query(`SELECT seq FROM events WHERE id >= $1 ORDER BY id LIMIT 1`, []any{uid.Least(uid.Event, want.Before.Add(commitTime))},
			func(r Row) error { return r.Scan(&below) })
	}
	return from, below, err
}
