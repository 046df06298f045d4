package event

import (
	"context"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/pubsub"
)

// Stored is a stored event with its sequence number. Numbers increase in commit
// order.
type Stored struct {
	Seq int64
	Event
}

// Filter selects events. Its zero value selects all.
type Filter struct {
	Types      []Type
	WorkflowID string
}

// Extent holds the sequence numbers of the oldest event that is still shown and of
// the newest one, of all workspaces. If there are none, Oldest is Newest + 1.
type Extent struct{ Oldest, Newest int64 }

// Store reads events. Each method is one transaction. Lists never include sample
// events.
type Store interface {
	// EventExtent ignores events before since.
	EventExtent(ctx context.Context, workspaceID string, since time.Time) (Extent, error)
	// EventsAfter returns the first matching events after a sequence number, and the
	// number up to which it has searched.
	EventsAfter(ctx context.Context, workspaceID string, filter Filter, after int64, limit int) (events []Stored, upTo int64, err error)
	// Events lists the matching events, newest first. A page may have fewer events
	// than requested, or none, and still have a next page: the number of rows
	// scanned per page is bounded.
	Events(ctx context.Context, workspaceID string, query Query, page paging.Request) (paging.Page[Stored], error)
}

// Service implements the use cases of events.
type Service struct {
	store   Store
	changes *pubsub.Broker
}

// NewService returns a service that uses the given store. written notifies, by
// workspace id, when events have been committed.
func NewService(store Store, written *pubsub.Broker) *Service {
	return &Service{store: store, changes: written}
}

// batchSize is the number of events that Next reads.
const batchSize = 100

// Feed follows the events of a workspace. It is not safe for concurrent use.
type Feed struct {
	service     *Service
	workspaceID string
	filter      Filter
	position    int64
	// Gap is set if events after the last one seen may have been deleted.
	Gap *Gap
	// Changes receives an element when there are new events since the last receive.
	Changes <-chan struct{}
}

// Gap is a range of sequence numbers whose events may be missing from the feed.
type Gap struct{ After, Through int64 }

// Follow returns a feed of the events of a workspace, which ends with the context.
// The feed starts after the event with the number lastSeen, or with new events if
// lastSeen is empty.
func (s *Service) Follow(ctx context.Context, workspaceID string, filter Filter, lastSeen string) (*Feed, error) {
	f := &Feed{service: s, workspaceID: workspaceID, filter: filter}
	changed, stop := s.changes.Subscribe(workspaceID)
	context.AfterFunc(ctx, stop)
	f.Changes = changed
	extent, err := s.store.EventExtent(ctx, workspaceID, clock.Now().Add(-Retention))
	if err != nil {
		return nil, err
	}
	f.position = extent.Newest
	if lastSeen == "" {
		return f, nil
	}
	seen, err := strconv.ParseInt(lastSeen, 10, 64)
	if err != nil || seen < 0 || strconv.FormatInt(seen, 10) != lastSeen {
		return nil, fault.New(fault.InvalidRequest, "Last-Event-ID: must be an ID that the event stream has sent")
	}
	switch {
	case seen > extent.Newest: // a backup was restored, or all events have expired
		f.Gap = &Gap{seen, extent.Newest}
	case seen < extent.Oldest-1:
		f.position = extent.Oldest - 1
		f.Gap = &Gap{seen, f.position}
	default:
		f.position = seen
	}
	return f, nil
}

// Position returns the sequence number up to which Next has read.
func (f *Feed) Position() int64 { return f.position }

// Next returns the events since the last call, and reports whether there may be
// more.
func (f *Feed) Next(ctx context.Context) (events []Stored, more bool, err error) {
	events, upTo, err := f.service.store.EventsAfter(ctx, f.workspaceID, f.filter, f.position, batchSize)
	if err != nil {
		return nil, false, err
	}
	f.position = upTo
	return events, len(events) == batchSize, nil
}
