package httprequest_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
)

const (
	blockSize = 1 << 20
	blocks    = 64
	// inFlight is how much may be between the two ends: in the buffers of the action,
	// of net/http and of the system.
	inFlight = 24 << 20
)

// gauge counts the bytes that have arrived at the other end.
type gauge struct {
	mu      sync.Mutex
	changed *sync.Cond
	arrived int64
}

func newGauge() *gauge {
	g := &gauge{}
	g.changed = sync.NewCond(&g.mu)
	return g
}

func (g *gauge) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.arrived += int64(len(p))
	g.changed.Broadcast()
	return len(p), nil
}

// await waits until that many bytes have arrived.
func (g *gauge) await(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.arrived < n {
		g.changed.Wait()
	}
}

// source is a file that yields a block only once all but inFlight bytes of what it has
// yielded so far have arrived. An action that held the file in memory would wait forever.
type source struct {
	to    *gauge
	given int64
	rest  []byte
}

func (s *source) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		if s.given == blocks*blockSize {
			return 0, io.EOF
		}
		s.to.await(s.given - inFlight)
		s.rest = make([]byte, blockSize)
		s.given += blockSize
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *source) Close() error { return nil }

// streams are files that exist only while they pass.
type streams struct {
	to *gauge
	// from is where the files that are read send their bytes.
	from *gauge
}

func (s streams) Create(context.Context, action.NewFile) (action.FileWriter, error) {
	return streamWriter{s.to}, nil
}

func (s streams) Open(context.Context, *expr.File, int64) (io.ReadCloser, error) {
	return &source{to: s.from}, nil
}

type streamWriter struct{ *gauge }

func (w streamWriter) Finish() (*expr.File, error) {
	return expr.NewFile(expr.File{ID: "file_1", Name: "a", Type: "b", Size: w.arrived}), nil
}

func (streamWriter) Abort() {}

// Neither end of a transfer waits for the whole file, so it is never in memory.
func TestFilesAreStreamed(t *testing.T) {
	t.Parallel()
	stored, received := newGauge(), newGauge()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(received, r.Body)
			return
		}
		for n := range int64(blocks) {
			stored.await(n*blockSize - inFlight)
			_, _ = w.Write(bytes.Repeat([]byte{'x'}, blockSize))
			_ = http.NewResponseController(w).Flush()
		}
	})
	files := streams{to: stored, from: received}
	output, failure := callWith(t, files, server, map[string]any{"url": "/x", "response": "file"})
	if failure != nil {
		t.Fatal(failure)
	}
	f, _ := output["body"].(*expr.File)
	if f == nil || f.Size != blocks*blockSize {
		t.Fatalf("got %v", output)
	}
	for name, with := range map[string]map[string]any{
		"body":      {"url": "/x", "method": "POST", "body": f},
		"multipart": {"url": "/x", "method": "POST", "multipart": map[string]any{"a": f}},
	} {
		received.arrived = 0
		if _, failure := callWith(t, files, server, with); failure != nil || received.arrived < f.Size {
			t.Errorf("%s: %v, %d bytes arrived", name, failure, received.arrived)
		}
	}
}
