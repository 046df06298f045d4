package event

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
)

// Retention is how long events are shown. An event is stored for longer only while
// a later delivery refers to it.
const Retention = 7 * 24 * time.Hour

// Query selects events to list.
type Query struct {
	Filter
	RunID string // empty: events of any run, or of none
	// After is inclusive. Before is exclusive; nil means no upper bound.
	After  time.Time
	Before *time.Time
}

// Matches reports whether the query selects the event.
func (q Query) Matches(e Event) bool {
	return (len(q.Types) == 0 || slices.Contains(q.Types, e.Type)) &&
		(q.WorkflowID == "" || e.WorkflowID == q.WorkflowID) && (q.RunID == "" || e.RunID == q.RunID) &&
		!e.At.Before(q.After) && (q.Before == nil || e.At.Before(*q.Before))
}

// List lists the events of a workspace, newest first.
func (s *Service) List(ctx context.Context, workspaceID string, query Query, page paging.Request) (paging.Page[Stored], error) {
	if oldest := clock.Now().Add(-Retention); query.After.Before(oldest) {
		query.After = oldest
	}
	return s.store.Events(ctx, workspaceID, query, page)
}
