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
)

// watch opens the stream of a run on a connection of its own, which costs this
// process nothing but a socket.
func (w *world) watch(run string) net.Conn {
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

// hears reads until a text comes.
func hears(t *testing.T, conn io.Reader, text string) {
	t.Helper()
	var read []byte
	for buffer := make([]byte, 4<<10); !bytes.Contains(read, []byte(text)); {
		n, err := conn.Read(buffer)
		if read = append(read, buffer[:n]...); err != nil {
			t.Fatalf("before %q came %v: %s", text, err, read)
		}
	}
}

func inUse() (goroutines int, memory uint64) {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return runtime.NumGoroutine(), stats.HeapInuse + stats.StackInuse
}

// A thousand who watch one run cost little, all hear of its end, and leave
// nothing behind. It counts what the process uses, so nothing runs beside it.
//
//nolint:paralleltest // see above
func TestAThousandStreams(t *testing.T) {
	const streams = 1000
	s := newServer(t, func(c *config.Serve) { c.StreamsPerWorkspace = streams })
	w := s.newWorld(t)
	w.workflow("wf", setStep, approveStep, logStep)
	w.waiting("run", "wf")
	goroutines, memory := inUse()

	var conns []net.Conn
	for range streams {
		conns = append(conns, w.watch("run"))
	}
	for _, conn := range conns {
		hears(t, conn, `"waiting"`)
	}
	w.call("GET", "/v1/runs/$run/events", "").want(429, "too_many_streams")
	moreGoroutines, moreMemory := inUse()
	perStream := (int64(moreMemory) - int64(memory)) / streams
	t.Logf("per stream: %.1f goroutines, %d bytes", float64(moreGoroutines-goroutines)/streams, perStream)
	if moreGoroutines-goroutines > 3*streams || perStream > 128<<10 {
		t.Errorf("%d streams use %d goroutines and %d bytes each", streams, moreGoroutines-goroutines, perStream)
	}

	w.approve("run")
	for _, conn := range conns {
		hears(t, conn, "event: end")
		_ = conn.Close()
	}
	eventually(t, "nothing is left of the streams", func() bool { return runtime.NumGoroutine() <= goroutines+20 })
}

// Those who do not read what they asked for hold up nobody: a run that writes a
// lot goes on at its own speed.
func TestRunsDoNotWaitForReaders(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newWorld(t)
	w.workflow("wf", approveStep, `{"id": "each", "repeat": {"until": "index == 400", "max": 1000}, "steps": [
		{"id": "say", "uses": "log.write", "with": {"message": "`+strings.Repeat("x", 2000)+`"}}]}`)
	took := map[string]time.Duration{}
	for name, readers := range map[string]int{"unwatched": 0, "watched": 50} {
		w.waiting(name, "wf")
		for range readers {
			w.watch(name)
		}
		begun := time.Now()
		w.approve(name)
		eventually(t, "the run ends", func() bool { return w.call("GET", "/v1/runs/$"+name, "").text("status") == "succeeded" })
		took[name] = time.Since(begun)
	}
	t.Logf("%v", took)
	if took["watched"] > 5*took["unwatched"]+5*time.Second {
		t.Errorf("a run that nobody reads of takes %v, others take %v", took["watched"], took["unwatched"])
	}
}
