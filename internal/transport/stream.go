package transport

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

const (
	// heartbeat keeps proxies from closing an idle stream.
	heartbeat = 15 * time.Second
	// recheckInterval is how often the key or session of a stream is checked. A change by another
	// process is noticed up to two seconds later, because credentials are cached that long:
	// together less than the 5 seconds that are promised.
	recheckInterval = 2500 * time.Millisecond
	// A stream reads the store at most once per shortPause. It pauses restFactor times as long as
	// the read took, but at most longPause, so that slow reads do not keep the database busy.
	shortPause = 100 * time.Millisecond
	longPause  = 2 * time.Second
	restFactor = 10
	// reconnect is how long clients wait before they reconnect.
	reconnect = 2 * time.Second
	// defaultStreams limits the open streams of a workspace.
	defaultStreams = 100
)

// Feed is the source of a stream.
type Feed interface {
	// Next writes new events, a limited number at a time.
	Next(ctx context.Context, out *EventStream) (FeedState, error)
	// OnHeartbeat can add to a heartbeat.
	OnHeartbeat(out *EventStream)
	// Changes receives a value when there may be new events.
	Changes() <-chan struct{}
}

// FeedState tells the stream how to continue after next.
type FeedState int

// What Next can return.
const (
	More FeedState = iota // there are more events now
	Idle                  // there may be more after the next change
	Done                  // there will be no more events
)

// stream responds with server-sent events until the feed ends, the client
// disconnects, its key or session is no longer allowed, or the service stops.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, e *Endpoint, f Feed) {
	c := CallerOf(r.Context())
	if !s.streams.acquire(c.Actor.Workspace.ID, s.StreamsPerWorkspace) {
		s.fail(w, c, fault.New(fault.TooManyStreams, "the workspace has reached its limit of %d open streams: close one or try again later", s.StreamsPerWorkspace).After(reconnect))
		return
	}
	defer s.streams.release(c.Actor.Workspace.ID)
	c.streamed = true
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // or nginx would buffer the events
	w.WriteHeader(e.Status)
	if r.Method == http.MethodHead {
		return
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	defer context.AfterFunc(s.stopping, end)()
	out := newSSE(w)
	defer out.finish()
	defer context.AfterFunc(ctx, out.interrupt)()
	p := pump{out: out, feed: f, authorize: func(ctx context.Context) error { return s.authorize(ctx, r, e, c) }}
	if err := p.run(ctx); err != nil && ctx.Err() == nil && !out.broken {
		s.fail(w, c, err)
	}
}

// authorize checks that the caller of a stream may still read it.
func (s *Server) authorize(ctx context.Context, r *http.Request, e *Endpoint, c *Caller) error {
	actor, _, err := s.authenticate(r.WithContext(ctx), c.mount)
	if err != nil {
		return err
	}
	if actor.Workspace.ID != c.Actor.Workspace.ID || !auth.Grants(actor.Scopes, e.Scope) {
		return c.mount.missingScope(e.Scope)
	}
	return nil
}

type pump struct {
	out       *EventStream
	feed      Feed
	authorize func(context.Context) error
}

func (p *pump) run(ctx context.Context) error {
	checks := time.NewTicker(recheckInterval)
	defer checks.Stop()
	p.out.retry(reconnect)
	for {
		start := clock.Monotonic()
		now, err := p.feed.Next(ctx, p.out)
		if err == nil {
			err = p.out.flush(ctx)
		}
		switch {
		case err != nil || now == Done:
			return err
		case now == More:
			select {
			case <-checks.C:
				err = p.authorize(ctx)
			default:
			}
		default:
			pause := min(max(shortPause, restFactor*time.Since(start)), longPause)
			err = p.wait(ctx, start.Add(pause), checks.C)
		}
		if err != nil {
			return err
		}
	}
}

// wait waits for a change and sends heartbeats meanwhile. It does not return for
// a change before the given time.
func (p *pump) wait(ctx context.Context, notBefore time.Time, checks <-chan time.Time) error {
	rest, heartbeats := time.NewTimer(time.Until(notBefore)), time.NewTicker(heartbeat)
	defer rest.Stop()
	defer heartbeats.Stop()
	var changes <-chan struct{}
	for {
		var err error
		select {
		case <-rest.C:
			changes = p.feed.Changes()
		case <-changes:
			return nil
		case <-checks:
			err = p.authorize(ctx)
		case <-heartbeats.C:
			p.out.comment()
			p.feed.OnHeartbeat(p.out)
			err = p.out.flush(ctx)
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

type openStreams struct {
	mu    sync.Mutex
	count map[string]int
}

func newOpenStreams() *openStreams { return &openStreams{count: map[string]int{}} }

func (o *openStreams) acquire(workspaceID string, atMost int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count[workspaceID] >= atMost {
		return false
	}
	o.count[workspaceID]++
	return true
}

func (o *openStreams) total() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	total := 0
	for _, n := range o.count {
		total += n
	}
	return total
}

func (o *openStreams) release(workspaceID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count[workspaceID]--; o.count[workspaceID] == 0 {
		delete(o.count, workspaceID)
	}
}
