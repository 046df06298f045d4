package api

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
	// heartbeat keeps proxies from taking a quiet stream for a dead one.
	heartbeat = 15 * time.Second
	// recheck is how often the key or session of a stream is looked at. A change that
	// another process made is seen up to two seconds later than that.
	recheck = 2500 * time.Millisecond
	// A stream asks the store at most once in shortPause, however much happens,
	// and is at rest for most of the time, but not for longer than longPause.
	shortPause = 100 * time.Millisecond
	longPause  = 2 * time.Second
	restFor    = 10 // times as long as it asked
	// reconnect is how long clients wait before they connect again.
	reconnect = 2 * time.Second
	// defaultStreams is how many streams a workspace may have open.
	defaultStreams = 100
)

// feed is what a stream shows.
type feed interface {
	// next writes what is new, a bounded part of it at a time.
	next(ctx context.Context, out *sse) (state, error)
	// quiet adds to a heartbeat what the client should know by then.
	quiet(out *sse)
	// news has an element when there is something new.
	news() <-chan struct{}
}

// state is how a feed stands after its next part.
type state int

const (
	more state = iota // there is more at once
	idle              // there is more after the next news
	over              // there will be no more
)

// stream answers with server-sent events until the feed ends, the client goes
// away, its key or session loses the right, or the service stops.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, e *endpoint, f feed) {
	c := callerOf(r.Context())
	if !s.streams.enter(c.actor.Workspace.ID, s.StreamsPerWorkspace) {
		s.fail(w, c, fault.New(fault.TooManyStreams, "the workspace has %d streams open, which is the most it may have", s.StreamsPerWorkspace).After(reconnect))
		return
	}
	defer s.streams.leave(c.actor.Workspace.ID)
	c.streamed = true
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for proxies that would collect the events
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
	p := pump{out: out, feed: f, permit: func(ctx context.Context) error { return s.permit(ctx, r, e, c) }}
	if err := p.run(ctx); err != nil && ctx.Err() == nil && !out.broken {
		s.fail(w, c, err)
	}
}

// permit looks again whether the caller of a stream may have it.
func (s *Server) permit(ctx context.Context, r *http.Request, e *endpoint, c *caller) error {
	actor, _, err := s.authenticate(r.WithContext(ctx), c.mount)
	if err != nil {
		return err
	}
	if actor.Workspace.ID != c.actor.Workspace.ID || !auth.Grants(actor.Scopes, e.Scope) {
		return c.mount.lacks(e.Scope)
	}
	return nil
}

// pump moves what a feed has to a client.
type pump struct {
	out    *sse
	feed   feed
	permit func(context.Context) error
}

func (p *pump) run(ctx context.Context) error {
	checks := time.NewTicker(recheck)
	defer checks.Stop()
	p.out.retry(reconnect)
	for {
		begun := clock.Mark()
		now, err := p.feed.next(ctx, p.out)
		if err == nil {
			err = p.out.flush(ctx)
		}
		switch {
		case err != nil || now == over:
			return err
		case now == more:
			select {
			case <-checks.C:
				err = p.permit(ctx)
			default:
			}
		default:
			pause := min(max(shortPause, restFor*time.Since(begun)), longPause)
			err = p.wait(ctx, begun.Add(pause), checks.C)
		}
		if err != nil {
			return err
		}
	}
}

// wait waits for news, and shows meanwhile that the stream is alive. News that
// comes earlier than the given time is heard then.
func (p *pump) wait(ctx context.Context, notBefore time.Time, checks <-chan time.Time) error {
	rest, beats := time.NewTimer(time.Until(notBefore)), time.NewTicker(heartbeat)
	defer rest.Stop()
	defer beats.Stop()
	var heard <-chan struct{}
	for {
		var err error
		select {
		case <-rest.C:
			heard = p.feed.news()
		case <-heard:
			return nil
		case <-checks:
			err = p.permit(ctx)
		case <-beats.C:
			p.out.comment()
			p.feed.quiet(p.out)
			err = p.out.flush(ctx)
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// openStreams counts the open streams of workspaces.
type openStreams struct {
	mu    sync.Mutex
	count map[string]int
}

func newOpenStreams() *openStreams { return &openStreams{count: map[string]int{}} }

func (o *openStreams) enter(workspaceID string, atMost int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count[workspaceID] >= atMost {
		return false
	}
	o.count[workspaceID]++
	return true
}

// total is how many streams all workspaces have open.
func (o *openStreams) total() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	total := 0
	for _, n := range o.count {
		total += n
	}
	return total
}

func (o *openStreams) leave(workspaceID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count[workspaceID]--; o.count[workspaceID] == 0 {
		delete(o.count, workspaceID)
	}
}
