package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/test/lane"
)

// dialStream opens the stream of a run on a raw connection, which costs this
// process only a socket.
func (w *testWorkspace) dialStream(run string) net.Conn {
	w.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(w.t.Context(), "tcp", strings.TrimPrefix(w.server.url, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		w.t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /v1/runs/%s/events HTTP/1.1\r\nHost: test\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n", w.names[run], w.key)
	return conn
}

// readUntil reads until a text appears.
func readUntil(t *testing.T, conn io.Reader, text string) {
	t.Helper()
	var read []byte
	for buffer := make([]byte, 4<<10); !bytes.Contains(read, []byte(text)); {
		n, err := conn.Read(buffer)
		if read = append(read, buffer[:n]...); err != nil {
			t.Fatalf("before %q came %v: %s", text, err, read)
		}
	}
}

func processUsage() (goroutines int, memory uint64) {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return runtime.NumGoroutine(), stats.HeapInuse + stats.StackInuse
}

// A thousand streams of one run are cheap, all receive its end, and leave
// nothing behind. Not parallel: it measures the process, in which other tests may have
// left something that ends meanwhile.
func TestThousandStreams(t *testing.T) {
	lane.LongOnly(t)
	const streams = 1000
	s := newServer(t, func(c *config.Serve) { c.StreamsPerWorkspace = streams })
	w := s.newTestWorkspace(t)
	w.workflow("wf", setStep, askStep, logStep)
	w.runUntilWaiting("run", "wf")
	goroutines, memory := processUsage()

	var conns []net.Conn
	for range streams {
		conns = append(conns, w.dialStream("run"))
	}
	for _, conn := range conns {
		readUntil(t, conn, `"waiting"`)
	}
	w.call("GET", "/v1/runs/$run/events", "").wantStatus(429, "too_many_streams")
	moreGoroutines, moreMemory := processUsage()
	perStream := (int64(moreMemory) - int64(memory)) / streams
	t.Logf("per stream: %.1f goroutines, %d bytes", float64(moreGoroutines-goroutines)/streams, perStream)
	if moreGoroutines-goroutines > 3*streams || perStream > 128<<10 {
		t.Errorf("%d streams use %d goroutines and %d bytes each", streams, moreGoroutines-goroutines, perStream)
	}

	w.approve("run")
	for _, conn := range conns {
		readUntil(t, conn, "event: end")
		_ = conn.Close()
	}
	eventually(t, "nothing is left of the streams", func() bool { return runtime.NumGoroutine() <= goroutines+20 })
}

// Clients that do not read their streams do not delay a run that logs a lot.
func TestBlockedStreamsDoNotDelayRuns(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newTestWorkspace(t)
	w.workflow("wf", askStep, `{"id": "each", "repeat": {"until": "index == 400", "max": 1000}, "steps": [
		{"id": "say", "uses": "log.write", "with": {"message": "`+strings.Repeat("x", 2000)+`"}}]}`)
	w.runUntilWaiting("run", "wf")
	for range 50 {
		w.dialStream("run")
	}
	w.approve("run")
	eventually(t, "the run ends", func() bool { return w.call("GET", "/v1/runs/$run", "").str("status") == "succeeded" })
}
