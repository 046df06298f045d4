package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/pubsub"
)

// scriptedFeed sends one prepared event per call.
type scriptedFeed struct {
	parts   []string
	changed chan struct{}
	then    FeedState
	reads   []time.Time
}

func newScriptedFeed(then FeedState, parts ...string) *scriptedFeed {
	return &scriptedFeed{parts: parts, changed: make(chan struct{}, 1), then: then}
}

func (s *scriptedFeed) Next(ctx context.Context, out *EventStream) (FeedState, error) {
	s.reads = append(s.reads, time.Now())
	if len(s.parts) == 0 {
		return s.then, nil
	}
	part := s.parts[0]
	s.parts = s.parts[1:]
	return Idle, out.Event(ctx, "part", "1", []byte(part))
}

func (s *scriptedFeed) OnHeartbeat(out *EventStream) { out.Position("7") }

func (s *scriptedFeed) Changes() <-chan struct{} { return s.changed }

func (s *scriptedFeed) notify() {
	pubsub.Signal(s.changed)
}

func allowed(context.Context) error { return nil }

func TestFraming(t *testing.T) {
	t.Parallel()
	to := httptest.NewRecorder()
	out := newSSE(to)
	out.retry(reconnect)
	for _, err := range []error{
		out.Event(t.Context(), "a", "1", []byte(`{"x":1}`)),
		out.Event(t.Context(), "b", "", []byte("one\ntwo\r\nthree\rfour")),
		out.Object(t.Context(), "c", "", map[string]string{"text": "<a>\r\n\u2028"}),
		out.flush(t.Context()),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := "retry: 2000\n\nevent: a\nid: 1\ndata: {\"x\":1}\n\nevent: b\ndata: one\ndata: two\ndata: three\ndata: four\n\n" +
		"event: c\ndata: {\"text\":\"<a>\\r\\n\\u2028\"}\n\n"
	if diff := cmp.Diff(want, to.Body.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !to.Flushed {
		t.Error("nothing was flushed")
	}
}

// An idle stream sends a heartbeat with its position every 15 seconds.
func TestStreamHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to := httptest.NewRecorder()
		ctx, stop := context.WithTimeout(t.Context(), 46*time.Second)
		defer stop()
		err := (&pump{out: newSSE(to), feed: newScriptedFeed(Idle), authorize: allowed}).run(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
		if diff := cmp.Diff("retry: 2000\n\n"+strings.Repeat(":\n\nid: 7\n\n", 3), to.Body.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A busy stream reads at most ten times a second; after a pause an event is
// sent immediately.
func TestStreamRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := newScriptedFeed(Idle)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- (&pump{out: newSSE(httptest.NewRecorder()), feed: feed, authorize: allowed}).run(ctx) }()
		for range 1000 {
			time.Sleep(time.Millisecond)
			feed.notify()
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := len(feed.reads); n < 10 || n > 12 {
			t.Errorf("in the second in which everything happened it asked %d times", n)
		}
		rung := time.Now()
		feed.notify()
		synctest.Wait()
		if last := feed.reads[len(feed.reads)-1]; !last.Equal(rung) {
			t.Errorf("it asked %v after the news", last.Sub(rung))
		}
		stop()
		<-done
	})
}

// The key is checked periodically, even under constant changes.
func TestStreamAuthorization(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]FeedState{"a quiet stream": Idle, "a busy stream": More} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start, revoked := time.Now(), errors.New("revoked")
				feed := &slowFeed{newScriptedFeed(then)}
				err := (&pump{out: newSSE(httptest.NewRecorder()), feed: feed, authorize: func(context.Context) error {
					if time.Since(start) > 10*time.Second {
						return revoked
					}
					return nil
				}}).run(t.Context())
				if took := time.Since(start); !errors.Is(err, revoked) || took > 13*time.Second {
					t.Errorf("it ended after %v with %v", took, err)
				}
			})
		})
	}
}

// slowFeed takes a while per call.
type slowFeed struct{ *scriptedFeed }

func (s *slowFeed) Next(ctx context.Context, out *EventStream) (FeedState, error) {
	time.Sleep(time.Millisecond)
	return s.scriptedFeed.Next(ctx, out)
}

// requestTimeout limits requests to the server of serveFeed.
const requestTimeout = 2 * time.Second

// serveFeed starts an HTTP server with one stream and short timeouts.
func serveFeed(t *testing.T, f func() Feed) (*Server, *httptest.Server) {
	t.Helper()
	s := New(Services{}, Options{Log: slog.New(slog.DiscardHandler)}, &RouteTable{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, &Caller{}))
		s.stream(&recorder{ResponseWriter: w}, r, &Endpoint{Route: Route{Status: http.StatusOK}}, f())
	}))
	server.Config.ReadTimeout, server.Config.WriteTimeout = requestTimeout, requestTimeout
	server.Config.RegisterOnShutdown(s.endStreams)
	server.Start()
	t.Cleanup(server.Close)
	return s, server
}

func openStream(t *testing.T, server *httptest.Server) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// Request timeouts do not end a stream.
func TestStreamsOutliveRequestTimeouts(t *testing.T) {
	t.Parallel()
	script := newScriptedFeed(Done, "first", "second")
	_, server := serveFeed(t, func() Feed { return script })
	response := openStream(t, server)
	lines := bufio.NewReader(response.Body)
	for line := ""; line != "data: first\n"; {
		var err error
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(requestTimeout + 100*time.Millisecond)
	script.notify()
	rest := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(lines)
		rest <- string(text)
	}()
	time.AfterFunc(300*time.Millisecond, script.notify)
	if got, want := <-rest, "\nevent: part\nid: 1\ndata: second\n\n"; got != want {
		t.Errorf("after the limits came %q, want %q", got, want)
	}
}

// endlessFeed always has more events.
type endlessFeed struct{ *scriptedFeed }

func (f *endlessFeed) Next(ctx context.Context, out *EventStream) (FeedState, error) {
	return More, out.Event(ctx, "part", "", make([]byte, 64<<10))
}

// A client that does not read is disconnected and does not delay a shutdown.
func TestStreamsToBlockedClients(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]bool{"is given up": false, "does not hold up a stop": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, server := serveFeed(t, func() Feed { return &endlessFeed{newScriptedFeed(More)} })
			openStream(t, server)
			opened := func() int {
				s.streams.mu.Lock()
				defer s.streams.mu.Unlock()
				return s.streams.count[""]
			}
			if opened() != 1 {
				t.Fatal("the stream is not open")
			}
			if stop {
				time.Sleep(500 * time.Millisecond) // until its buffers are full
				s.endStreams()
			}
			for start := time.Now(); opened() > 0; time.Sleep(5 * time.Millisecond) {
				if time.Since(start) > time.Minute {
					t.Fatal("the stream is still open")
				}
			}
		})
	}
}
