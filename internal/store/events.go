package store

import (
	"context"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/uid"
)

// insertEvents writes events with one delivery for each webhook that wants
// them: the webhooks that exist at this commit.
func (s *Store) insertEvents(u *unit, events ...event.Event) error {
	for _, e := range events {
		u.afterCommit(func() { s.notify.Recorded(e.WorkspaceID) })
		if _, err := u.Exec(`INSERT INTO events (id, workspace_id, type, workflow_id, run_id, at, body) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			e.ID, e.WorkspaceID, string(e.Type), e.WorkflowID, orNil(e.RunID), e.At, e.Body); err != nil {
			return err
		}
		hooks, err := list(u, selectWebhook+`WHERE workspace_id = $1 AND deleted_at IS NULL`, []any{e.WorkspaceID}, scanWebhook)
		if err != nil {
			return err
		}
		for _, hook := range hooks {
			if !hook.Wants(e) {
				continue
			}
			u.afterCommit(s.notify.Deliverable)
			if _, err := u.Exec(`INSERT INTO deliveries (id, workspace_id, webhook_id, event_id, run_id, status, attempts, next_at, created_at)
				VALUES ($1, $2, $3, $4, $5, 'pending', 0, $6, $7)`,
				uid.At(uid.Delivery, e.At), e.WorkspaceID, hook.ID, e.ID, orNil(e.RunID), e.At, e.At); err != nil {
				return err
			}
		}
	}
	return nil
}

// EventExtent implements event.Store.
func (s *Store) EventExtent(ctx context.Context) (event.Extent, error) {
	var kept event.Extent
	err := s.read(ctx, func(c Conn) error {
		return c.Query(`SELECT (SELECT min(seq) FROM events), (SELECT max(seq) FROM events)`, nil,
			func(r Row) error { return r.Scan(&kept.Oldest, &kept.Newest) })
	})
	return kept, err
}

// EventsAfter implements event.Store.
func (s *Store) EventsAfter(ctx context.Context, workspaceID string, want event.Filter, after int64, limit int) (events []event.Stored, upTo int64, err error) {
	statement, args := `SELECT seq, type, body FROM events WHERE workspace_id = $1 AND seq > $2`, []any{workspaceID, after, limit}
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
		upTo = after
		if err := c.Query(`SELECT max(seq) FROM events`, nil, func(r Row) error { return r.Scan(&upTo) }); err != nil {
			return err
		}
		upTo = max(upTo, after) // all may be too old to be kept
		var err error
		events, err = list(c, statement+` ORDER BY seq LIMIT $3`, args, func(r Row) (e event.Stored, err error) {
			err = r.Scan(&e.Seq, (*string)(&e.Type), &e.Body)
			return e, err
		})
		if n := len(events); n == limit {
			upTo = events[n-1].Seq
		}
		return err
	})
	return events, upTo, err
}
