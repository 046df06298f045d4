package event

import (
	"context"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/news"
	"github.com/stepmill/stepmill/internal/paging"
)

// Stored is an event with its number. Numbers grow with the commits that wrote
// the events.
type Stored struct {
	Seq int64
	Event
}

// Filter says which events are wanted; its zero value wants all.
type Filter struct {
	Types      []Type
	WorkflowID string
}

// Extent is the oldest event that is shown and the newest there is, of all
// workspaces. Without any the oldest would be the next one.
type Extent struct{ Oldest, Newest int64 }

// Store keeps events. A method is one atomic unit. Samples, which did not
// happen, are never among what it lists.
type Store interface {
	// EventExtent takes what happened before that time for gone.
	EventExtent(ctx context.Context, workspaceID string, since time.Time) (Extent, error)
	// EventsAfter lists the first wanted events after a number, and returns the
	// number that it has looked up to.
	EventsAfter(ctx context.Context, workspaceID string, want Filter, after int64, limit int) (events []Stored, upTo int64, err error)
	// Events lists the wanted events, newest first. A page may hold fewer than
	// asked for, or none, and still have a next one: how many rows are looked at
	// for it is bounded.
	Events(ctx context.Context, workspaceID string, want Query, page paging.Request) (paging.Page[Stored], error)
}

// Service has the use cases of events.
type Service struct {
	store Store
	news  *news.Hub
}

// NewService makes a service on a store; written has news of workspaces, by
// their ids, whenever events of them were written.
func NewService(store Store, written *news.Hub) *Service {
	return &Service{store: store, news: written}
}

// eventsAtOnce is how many events are read at a time.
const eventsAtOnce = 100

// Feed follows the events of a workspace. Its methods are for one goroutine.
type Feed struct {
	service     *Service
	workspaceID string
	want        Filter
	at          int64
	// Gap is set when events after the last one seen may be gone.
	Gap *Gap
	// News has an element when there are new events since the last one was taken.
	News <-chan struct{}
}

// Gap says that what happened between two numbers cannot be told any more.
type Gap struct{ After, Through int64 }

// Follow begins to follow the events of a workspace, for as long as the context
// lasts. It goes on after the number of the event seen last, or, without one,
// from now on.
func (s *Service) Follow(ctx context.Context, workspaceID string, want Filter, lastSeen string) (*Feed, error) {
	f := &Feed{service: s, workspaceID: workspaceID, want: want}
	heard, stop := s.news.Wait(workspaceID)
	context.AfterFunc(ctx, stop)
	f.News = heard
	kept, err := s.store.EventExtent(ctx, workspaceID, clock.Now().Add(-Keep))
	if err != nil {
		return nil, err
	}
	f.at = kept.Newest
	if lastSeen == "" {
		return f, nil
	}
	seen, err := strconv.ParseInt(lastSeen, 10, 64)
	if err != nil || seen < 0 || strconv.FormatInt(seen, 10) != lastSeen {
		return nil, fault.New(fault.InvalidRequest, "Last-Event-ID: is not one that the stream of events has sent")
	}
	switch {
	case seen > kept.Newest: // there were more events once: a backup was restored, or all are too old
		f.Gap = &Gap{seen, kept.Newest}
	case seen < kept.Oldest-1:
		f.at = kept.Oldest - 1
		f.Gap = &Gap{seen, f.at}
	default:
		f.at = seen
	}
	return f, nil
}

// At is the number up to which everything was told.
func (f *Feed) At() int64 { return f.at }

// Next reads the events since the last time, and tells whether there are more.
func (f *Feed) Next(ctx context.Context) (events []Stored, more bool, err error) {
	events, upTo, err := f.service.store.EventsAfter(ctx, f.workspaceID, f.want, f.at, eventsAtOnce)
	if err != nil {
		return nil, false, err
	}
	f.at = upTo
	return events, len(events) == eventsAtOnce, nil
}
