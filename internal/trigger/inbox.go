package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
)

// Request is a call of a hook that is kept for a while, so that those who build
// the workflow can work with real data.
type Request struct {
	ID     string
	At     time.Time
	Method string
	Size   int // of the body
	// Outcome is started, duplicate, or the code of why nothing was started.
	Outcome string
	RunID   string
	Headers json.RawMessage
	Query   json.RawMessage
	Payload json.RawMessage // nil: it was too large
}

const (
	// RequestsFor is how long calls of a hook are kept.
	RequestsFor = 7 * 24 * time.Hour
	// keepRequests is how many of them are.
	keepRequests = 20
	// largestKept bounds the payload of a call that is kept.
	largestKept = 64 << 10
	// mostPending bounds what waits to be written, in bytes.
	mostPending = 16 << 20
)

// InboxStore keeps calls of hooks.
type InboxStore interface {
	// KeepRequests adds calls of a trigger and removes those beyond the newest.
	KeepRequests(ctx context.Context, of Trigger, requests []Request, atMost int) error
	Requests(ctx context.Context, workspaceID, workflowID, id string, since time.Time, page paging.Request) (paging.Page[Request], error)
	NoteTrigger(ctx context.Context, of Trigger, failed, idle *Note) error
}

// Inbox gathers the latest calls of hooks, and what is worth noting about them,
// in memory: under load most of it is replaced before it is written.
type Inbox struct {
	store InboxStore

	mu      sync.Mutex
	pending map[hookKey]*gathered
	bytes   int
}

type hookKey struct{ workflowID, id string }

type gathered struct {
	of           Trigger
	requests     []Request // the newest last
	failed, idle *Note
}

// NewInbox makes an inbox that writes to a store.
func NewInbox(store InboxStore) *Inbox {
	return &Inbox{store: store, pending: map[hookKey]*gathered{}}
}

func (r Request) size() int { return len(r.Headers) + len(r.Query) + len(r.Payload) }

func (i *Inbox) of(t Trigger) *gathered {
	key := hookKey{t.WorkflowID, t.ID}
	b := i.pending[key]
	if b == nil {
		b = &gathered{of: t}
		i.pending[key] = b
	}
	return b
}

// Keep keeps a call.
func (i *Inbox) Keep(of Trigger, r Request) {
	if len(r.Payload) > largestKept {
		r.Payload = nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bytes+r.size() > mostPending {
		return
	}
	b := i.of(of)
	i.bytes += r.size()
	b.requests = append(b.requests, r)
	if len(b.requests) > keepRequests {
		i.bytes -= b.requests[0].size()
		b.requests = append(b.requests[:0], b.requests[1:]...)
	}
}

// Note notes what went wrong with a hook, or why it did not fire.
func (i *Inbox) Note(of Trigger, failed, idle *Note) {
	i.mu.Lock()
	defer i.mu.Unlock()
	b := i.of(of)
	if failed != nil {
		b.failed = failed
	}
	if idle != nil {
		b.idle = idle
	}
}

// Flush writes what has gathered. What cannot be written is dropped.
func (i *Inbox) Flush(ctx context.Context) error {
	i.mu.Lock()
	pending := i.pending
	i.pending, i.bytes = map[hookKey]*gathered{}, 0
	i.mu.Unlock()
	var errs []error
	for _, b := range pending {
		if len(b.requests) > 0 {
			errs = append(errs, i.store.KeepRequests(ctx, b.of, b.requests, keepRequests))
		}
		if b.failed != nil || b.idle != nil {
			errs = append(errs, i.store.NoteTrigger(ctx, b.of, b.failed, b.idle))
		}
	}
	return errors.Join(errs...)
}

// Requests lists the latest calls of a webhook, newest first.
func (s *Service) Requests(ctx context.Context, actor auth.Actor, workflowID, id string, page paging.Request) (paging.Page[Request], error) {
	t, err := s.webhook(ctx, actor, workflowID, id)
	if err != nil {
		return paging.Page[Request]{}, err
	}
	if err := s.inbox.Flush(ctx); err != nil {
		return paging.Page[Request]{}, err
	}
	return s.inbox.store.Requests(ctx, t.WorkspaceID, t.WorkflowID, t.ID, clock.Now().Add(-RequestsFor), page)
}
