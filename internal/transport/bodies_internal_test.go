package transport

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
)

func wantUnavailable(t *testing.T, what string, err error) {
	t.Helper()
	if f, ok := fault.As(err); !ok || f.Code != fault.Unavailable || f.RetryAfter == 0 {
		t.Errorf("%s: got %v", what, err)
	}
}

func TestBodyBudget(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	b := newBodyBudget(64 * mib)
	one, two := WorkspaceBodies("ws_1"), WorkspaceBodies("ws_2")
	first := b.reserve(one)
	for _, size := range []int64{4 << 10, 8 * mib, 16 * mib} {
		if err := first.Grow(size + freeBodyBytes); err != nil {
			t.Fatal(err)
		}
	}
	more := b.reserve(one)
	if err := more.Grow(freeBodyBytes); err != nil {
		t.Errorf("a small body was rejected: %v", err)
	}
	wantUnavailable(t, "more than a quarter for one workspace", more.Grow(freeBodyBytes+1))
	wantUnavailable(t, "the same through a hook", b.reserve(one, HookBodies("wf_1/hook")).Grow(mib))
	hook := b.reserve(two, HookBodies("wf_2/hook"))
	if err := hook.Grow(8*mib + freeBodyBytes); err != nil {
		t.Fatal(err)
	}
	wantUnavailable(t, "more than an eighth for one hook", hook.Grow(9*mib))
	rest := []*Reservation{first, more, hook}
	for i := range 5 {
		r := b.reserve(NetworkBodies(fmt.Sprint(i)))
		if err := r.Grow(8*mib + freeBodyBytes); err != nil {
			t.Fatal(err)
		}
		rest = append(rest, r)
	}
	wantUnavailable(t, "more than the budget", b.reserve(NetworkBodies("another")).Grow(mib))
	for _, r := range rest {
		r.Release()
		r.Release()
	}
	if b.used != 0 || len(b.owned) != 0 {
		t.Errorf("%d bytes are reserved in the end, by %v", b.used, b.owned)
	}
}

// A body of the largest plan fits even into a small budget.
func TestSmallBodyBudget(t *testing.T) {
	t.Parallel()
	if err := newBodyBudget(8 << 20).reserve(HookBodies("wf_1/hook")).Grow(4 << 20); err != nil {
		t.Error(err)
	}
}

// A body reserves no more than twice what has arrived of it, whatever its declared
// length is.
func TestReservationFollowsTheBody(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for _, declared := range []int64{-1, size} {
		b := newBodyBudget(1 << 30)
		reserved := b.reserve(WorkspaceBodies("ws_1"))
		arrived := int64(0)
		body := readerFunc(func(p []byte) (int, error) {
			if reserved.held > 2*arrived {
				t.Fatalf("%d bytes are reserved after %d", reserved.held, arrived)
			}
			if arrived == size {
				return 0, io.EOF
			}
			n := min(len(p), 1000, int(size-arrived))
			arrived += int64(n)
			return n, nil
		})
		r := &http.Request{Body: io.NopCloser(body), ContentLength: declared}
		if got, err := readBody(r, size, reserved, io.ErrShortBuffer); err != nil || len(got) != size {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
		reserved.Release()
		arrived = 0
		if _, err := readBody(r, size-1, b.reserve(WorkspaceBodies("ws_1")), io.ErrShortBuffer); err != io.ErrShortBuffer { //nolint:errorlint // as passed in
			t.Errorf("a body over the limit: %v", err)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// readWhole reads a body into memory, as most requests do.
func readWhole(r *http.Request) (int64, error) {
	body, err := readBody(r, 1<<20, newBodyBudget(0).reserve(), io.ErrShortBuffer)
	return int64(len(body)), err
}

// readStream reads a body as uploads do.
func readStream(r *http.Request) (int64, error) {
	in := &request{http: r}
	if err := in.openStream(); err != nil {
		return 0, err
	}
	return io.Copy(io.Discard, in.stream)
}

// sendSlowly sends a request in chunks to a server that reads its body, and
// returns the response and how long it took.
func sendSlowly(t *testing.T, read func(*http.Request) (int64, error), chunks int, size int, pause time.Duration) (status string, took time.Duration) {
	t.Helper()
	ours, theirs := net.Pipe()
	listener := &fakeListener{conns: make(chan net.Conn, 1)}
	listener.conns <- remoteConn{theirs}
	server := &http.Server{ReadTimeout: 30 * time.Second, WriteTimeout: responseTime, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, _ = trackBody(w, r)
		n, err := read(r)
		if f, ok := fault.As(err); ok {
			writeError(w, f, "")
			return
		}
		_, _ = fmt.Fprint(w, n)
	})}
	go func() { _ = server.Serve(listener) }()
	defer close(listener.conns)
	var sender sync.WaitGroup
	defer sender.Wait()
	defer func() { _ = ours.Close() }()
	start := time.Now()
	sender.Go(func() {
		_, _ = fmt.Fprintf(ours, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", chunks*size)
		for range chunks {
			time.Sleep(pause)
			if _, err := io.WriteString(ours, strings.Repeat("x", size)); err != nil {
				return
			}
		}
	})
	response, err := http.ReadResponse(bufio.NewReader(ours), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.Status + " " + string(text), time.Since(start)
}

// A client may be slow, even for longer than the timeouts of other requests, but
// it must not stall.
func TestMinimumBodyRate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		read         func(*http.Request) (int64, error)
		chunks, size int
		pause        time.Duration
		want         string
		within       time.Duration
	}{
		{"2 KiB/s for 100 s", readWhole, 200, 1 << 10, time.Second / 2, "200 OK 204800", 101 * time.Second},
		{"a pause of 8 s", readWhole, 2, 1 << 10, 8 * time.Second, "400 Bad Request", 10 * time.Second},
		{"one pause of 8 s", readWhole, 1, 1 << 10, 8 * time.Second, "200 OK 1024", 8 * time.Second},
		{"100 bytes/s", readWhole, 1000, 100, time.Second, "400 Bad Request", 10 * time.Second},
		{"1,200 bytes/s for more than five minutes", readWhole, 600, 1200, time.Second, "400 Bad Request", 5 * time.Minute},
		{"an upload at 1,200 bytes/s for ten hours", readStream, 36_000, 1200, time.Second, "200 OK 43200000", 11 * time.Hour},
		{"an upload at 100 bytes/s", readStream, 1000, 100, time.Second, "400 Bad Request", 11 * time.Second},
		{"an upload that stalls", readStream, 2, 1 << 10, time.Hour, "400 Bad Request", 11 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got, took := sendSlowly(t, tc.read, tc.chunks, tc.size, tc.pause)
				if !strings.HasPrefix(got, tc.want) || took > tc.within {
					t.Errorf("got %.300s after %s", got, took)
				}
				if strings.HasPrefix(tc.want, "400") && !strings.Contains(got, "too slowly") {
					t.Errorf("the message is %s", got)
				}
			})
		})
	}
}
