package event

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
)

// Keep is how long events are shown. One stays longer only for the sake of a
// delivery that is younger than the event.
const Keep = 7 * 24 * time.Hour

// Query narrows a list of events.
type Query struct {
	Filter
	RunID string // empty: any, or none
	// After is the first moment that counts, Before the first that does not, nil:
	// all that came later.
	After  time.Time
	Before *time.Time
}

// Matches tells whether an event is one that is looked for.
func (q Query) Matches(e Event) bool {
	return (len(q.Types) == 0 || slices.Contains(q.Types, e.Type)) &&
		(q.WorkflowID == "" || e.WorkflowID == q.WorkflowID) && (q.RunID == "" || e.RunID == q.RunID) &&
		!e.At.Before(q.After) && (q.Before == nil || e.At.Before(*q.Before))
}

// List lists the events of a workspace, newest first.
func (s *Service) List(ctx context.Context, workspaceID string, want Query, page paging.Request) (paging.Page[Stored], error) {
	if oldest := clock.Now().Add(-Keep); want.After.Before(oldest) {
		want.After = oldest
	}
	return s.store.Events(ctx, workspaceID, want, page)
}
