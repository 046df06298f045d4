package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
)

// Request is a stored call of a hook. The authors of a workflow use it to build
// with real data.
type Request struct {
	ID     string
	At     time.Time
	Method string
	Size   int // of the body
	// Outcome is started, duplicate, or the error code if no run was started.
	Outcome string
	// Reason says in words why no run was started.
	Reason string
	// Verified is false for a call that did not prove where it comes from. Nothing of its
	// headers, query and body is stored.
	Verified bool
	RunID    string
	Headers  json.RawMessage
	Query    json.RawMessage
	Payload  json.RawMessage // nil: too large to store, or not readable
	// Files are the JSON pointers of the references to files inside Payload.
	Files []string
}

const (
	// RequestRetention is how long calls of a hook are stored.
	RequestRetention = 7 * 24 * time.Hour
	// maxRequests limits the stored calls per hook: those that were verified, and as many
	// that were not.
	maxRequests = 20
	// maxStoredPayload limits the payload of a stored call.
	maxStoredPayload = 64 << 10
	// maxPendingBytes limits the memory for calls that wait to be written. They are for people to
	// look at, so those beyond it are dropped.
	maxPendingBytes = 16 << 20
)

// InboxStore stores calls of hooks.
type InboxStore interface {
	// SaveRequests stores calls of a trigger and deletes all but the newest atMost that were
	// verified, and as many that were not.
	SaveRequests(ctx context.Context, of Trigger, requests []Request, atMost int) error
	// SaveTest stores a call as the test that a trigger is listening for, and ends that. It
	// returns false, having stored nothing, if the trigger is not listening.
	SaveTest(ctx context.Context, of Trigger, r Request, atMost int) (saved bool, err error)
	Requests(ctx context.Context, workspaceID, workflowID, id string, since time.Time, page paging.Request) (paging.Page[Request], error)
	NoteTrigger(ctx context.Context, of Trigger, failed, notFired *Note) error
}

// Inbox buffers the latest calls and notes of hooks in memory. Under load most of
// them are replaced before they are written.
type Inbox struct {
	store InboxStore

	// flushing is held while the buffer is written, so that whoever reads after a Flush also
	// finds what another one had taken out of the buffer.
	flushing sync.Mutex

	mu      sync.Mutex
	pending map[hookKey]*pendingWrites
	bytes   int
}

type hookKey struct{ workflowID, id string }

type pendingWrites struct {
	of               Trigger
	requests         []Request // newest last
	failed, notFired *Note
}

// NewInbox returns an inbox that writes to a store.
func NewInbox(store InboxStore) *Inbox {
	return &Inbox{store: store, pending: map[hookKey]*pendingWrites{}}
}

func (r Request) size() int { return len(r.Headers) + len(r.Query) + len(r.Payload) }

// cut removes a payload that is too large to store.
func (r Request) cut() Request {
	if len(r.Payload) > maxStoredPayload {
		r.Payload, r.Files = nil, nil
	}
	return r
}

// SaveTest stores a call as the test that a trigger is listening for. It is not buffered:
// people wait for it, perhaps at another node.
func (i *Inbox) SaveTest(ctx context.Context, of Trigger, r Request) (bool, error) {
	return i.store.SaveTest(ctx, of, r.cut(), maxRequests)
}

func (i *Inbox) entry(t Trigger) *pendingWrites {
	key := hookKey{t.WorkflowID, t.ID}
	e := i.pending[key]
	if e == nil {
		e = &pendingWrites{of: t}
		i.pending[key] = e
	}
	return e
}

// Record buffers a call.
func (i *Inbox) Record(of Trigger, r Request) {
	r = r.cut()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bytes+r.size() > maxPendingBytes {
		return
	}
	e := i.entry(of)
	i.bytes += r.size()
	e.requests = append(e.requests, r)
	isLike := func(other Request) bool { return other.Verified == r.Verified }
	if count(e.requests, isLike) > maxRequests {
		oldest := slices.IndexFunc(e.requests, isLike)
		i.bytes -= e.requests[oldest].size()
		e.requests = slices.Delete(e.requests, oldest, oldest+1)
	}
}

func count(requests []Request, matches func(Request) bool) (n int) {
	for _, r := range requests {
		if matches(r) {
			n++
		}
	}
	return n
}

// Note buffers the last error of a hook, or why it did not fire.
func (i *Inbox) Note(of Trigger, failed, notFired *Note) {
	i.mu.Lock()
	defer i.mu.Unlock()
	e := i.entry(of)
	if failed != nil {
		e.failed = failed
	}
	if notFired != nil {
		e.notFired = notFired
	}
}

// Flush writes the buffer. It drops what cannot be written.
func (i *Inbox) Flush(ctx context.Context) error {
	i.flushing.Lock()
	defer i.flushing.Unlock()
	i.mu.Lock()
	pending := i.pending
	i.pending, i.bytes = map[hookKey]*pendingWrites{}, 0
	i.mu.Unlock()
	var errs []error
	for _, e := range pending {
		if len(e.requests) > 0 {
			errs = append(errs, i.store.SaveRequests(ctx, e.of, e.requests, maxRequests))
		}
		if e.failed != nil || e.notFired != nil {
			errs = append(errs, i.store.NoteTrigger(ctx, e.of, e.failed, e.notFired))
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
	return s.inbox.store.Requests(ctx, t.WorkspaceID, t.WorkflowID, t.ID, clock.Now().Add(-RequestRetention), page)
}
