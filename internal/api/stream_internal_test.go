package api

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
)

// script is a feed that tells one thing each time it is asked.
type script struct {
	parts []string
	bell  chan struct{}
	then  state
	asked []time.Time
}

func newScript(then state, parts ...string) *script {
	return &script{parts: parts, bell: make(chan struct{}, 1), then: then}
}

func (s *script) next(ctx context.Context, out *sse) (state, error) {
	s.asked = append(s.asked, time.Now())
	if len(s.parts) == 0 {
		return s.then, nil
	}
	part := s.parts[0]
	s.parts = s.parts[1:]
	return idle, out.event(ctx, "part", "1", []byte(part))
}

func (s *script) quiet(out *sse) { out.position("7") }

func (s *script) news() <-chan struct{} { return s.bell }

func (s *script) ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

func allowed(context.Context) error { return nil }

func TestFraming(t *testing.T) {
	t.Parallel()
	to := httptest.NewRecorder()
	out := newSSE(to)
	out.retry(reconnect)
	for _, err := range []error{
		out.event(t.Context(), "a", "1", []byte(`{"x":1}`)),
		out.event(t.Context(), "b", "", []byte("one\ntwo\r\nthree\rfour")),
		out.object(t.Context(), "c", "", map[string]string{"text": "<a>\r\n\u2028"}),
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

// A quiet stream shows every 15 seconds that it is alive, and where it is.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to := httptest.NewRecorder()
		ctx, stop := context.WithTimeout(t.Context(), 46*time.Second)
		defer stop()
		err := (&pump{out: newSSE(to), feed: newScript(idle), permit: allowed}).run(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
		if diff := cmp.Diff("retry: 2000\n\n"+strings.Repeat(":\n\nid: 7\n\n", 3), to.Body.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// However much happens, a stream asks ten times a second; what comes after a
// pause is told at once.
func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := newScript(idle)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- (&pump{out: newSSE(httptest.NewRecorder()), feed: feed, permit: allowed}).run(ctx) }()
		for range 1000 {
			time.Sleep(time.Millisecond)
			feed.ring()
		}
		time.Sleep(5 * time.Second)
		if n := len(feed.asked); n < 10 || n > 12 {
			t.Errorf("in the second in which everything happened it asked %d times", n)
		}
		rung := time.Now()
		feed.ring()
		synctest.Wait()
		if last := feed.asked[len(feed.asked)-1]; !last.Equal(rung) {
			t.Errorf("it asked %v after the news", last.Sub(rung))
		}
		stop()
		<-done
	})
}

// The key is looked at again and again, also while there is no end of news.
func TestPermission(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]state{"a quiet stream": idle, "a busy stream": more} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun, refused := time.Now(), errors.New("revoked")
				feed := &slow{newScript(then)}
				err := (&pump{out: newSSE(httptest.NewRecorder()), feed: feed, permit: func(context.Context) error {
					if time.Since(begun) > 10*time.Second {
						return refused
					}
					return nil
				}}).run(t.Context())
				if took := time.Since(begun); !errors.Is(err, refused) || took > 13*time.Second {
					t.Errorf("it ended after %v with %v", took, err)
				}
			})
		})
	}
}

// slow takes a while to tell.
type slow struct{ *script }

func (s *slow) next(ctx context.Context, out *sse) (state, error) {
	time.Sleep(time.Millisecond)
	return s.script.next(ctx, out)
}

// serveFeed is a real server with nothing but one stream, and hardly any time
// for requests.
func serveFeed(t *testing.T, f func() feed) (*Server, *httptest.Server) {
	t.Helper()
	s := New(Services{}, Options{Log: slog.New(slog.DiscardHandler)})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, &caller{}))
		s.stream(&recorder{ResponseWriter: w}, r, &endpoint{Route: Route{Status: http.StatusOK}}, f())
	}))
	server.Config.ReadTimeout, server.Config.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	server.Config.RegisterOnShutdown(s.endStreams)
	server.Start()
	t.Cleanup(server.Close)
	return s, server
}

func open(t *testing.T, server *httptest.Server) *http.Response {
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

// The time limits of requests do not end a stream.
func TestStreamsOutliveTheLimitsOfRequests(t *testing.T) {
	t.Parallel()
	told := newScript(over, "first", "second")
	_, server := serveFeed(t, func() feed { return told })
	response := open(t, server)
	lines := bufio.NewReader(response.Body)
	for line := ""; line != "data: first\n"; {
		var err error
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(400 * time.Millisecond) // longer than the limits
	told.ring()
	rest := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(lines)
		rest <- string(text)
	}()
	time.AfterFunc(300*time.Millisecond, told.ring)
	if got, want := <-rest, "\nevent: part\nid: 1\ndata: second\n\n"; got != want {
		t.Errorf("after the limits came %q, want %q", got, want)
	}
}

// flood never stops telling.
type flood struct{ *script }

func (f *flood) next(ctx context.Context, out *sse) (state, error) {
	return more, out.event(ctx, "part", "", make([]byte, 64<<10))
}

// A client that takes nothing is given up, and does not hold up a stop.
func TestStreamsToThoseWhoDoNotRead(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]bool{"is given up": false, "does not hold up a stop": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, server := serveFeed(t, func() feed { return &flood{newScript(more)} })
			open(t, server)
			opened := func() int {
				s.streams.mu.Lock()
				defer s.streams.mu.Unlock()
				return s.streams.count[""]
			}
			if opened() != 1 {
				t.Fatal("the stream is not open")
			}
			within := writeTime + 5*time.Second
			if stop {
				time.Sleep(500 * time.Millisecond) // until its buffers are full
				s.endStreams()
				within = 2 * time.Second
			}
			for begun := time.Now(); opened() > 0; time.Sleep(5 * time.Millisecond) {
				if time.Since(begun) > within {
					t.Fatalf("after %v the stream is still open", within)
				}
			}
		})
	}
}
