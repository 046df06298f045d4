package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/strictjson"
)

const (
	// writeTime is how long a client may take nothing before it is given up.
	writeTime = 5 * time.Second
	// closeTime is what the end of a stream may take.
	closeTime = time.Second
	// flushAt is how much is gathered before it is sent.
	flushAt = 32 << 10
)

// sse writes server-sent events to one client.
type sse struct {
	to         http.ResponseWriter
	connection *http.ResponseController
	gathered   bytes.Buffer

	mu      sync.Mutex
	writing bool
	broken  bool
}

func newSSE(to http.ResponseWriter) *sse {
	return &sse{to: to, connection: http.NewResponseController(to)}
}

// lineEnds are all ways to end a line that a reader of events knows.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// event gathers an event. One without an id leaves the position of the client
// where it is.
func (e *sse) event(ctx context.Context, name, id string, data []byte) error {
	fmt.Fprintf(&e.gathered, "event: %s\n", name)
	if id != "" {
		fmt.Fprintf(&e.gathered, "id: %s\n", id)
	}
	for line := range strings.SplitSeq(lineEnds.Replace(string(data)), "\n") {
		fmt.Fprintf(&e.gathered, "data: %s\n", line)
	}
	e.gathered.WriteByte('\n')
	if e.gathered.Len() < flushAt {
		return nil
	}
	return e.flush(ctx)
}

// object gathers an event whose data is a value.
func (e *sse) object(ctx context.Context, name, id string, value any) error {
	data, err := strictjson.Encode(value)
	if err != nil {
		return err
	}
	return e.event(ctx, name, id, data)
}

// position tells the client where it is, without an event.
func (e *sse) position(id string) { fmt.Fprintf(&e.gathered, "id: %s\n\n", id) }

// retry tells the client how long to wait before it connects again.
func (e *sse) retry(after time.Duration) {
	fmt.Fprintf(&e.gathered, "retry: %d\n\n", after.Milliseconds())
}

// comment gathers a line that only shows that the stream is alive.
func (e *sse) comment() { e.gathered.WriteString(":\n\n") }

// flush sends what has gathered. Nothing is sent once the context has ended,
// and a client that takes nothing is waited for only until then.
func (e *sse) flush(ctx context.Context) error {
	if e.gathered.Len() == 0 {
		return ctx.Err()
	}
	if !e.begin(ctx) {
		return ctx.Err()
	}
	_, err := e.to.Write(e.gathered.Bytes())
	if err == nil {
		err = e.connection.Flush()
	}
	e.gathered.Reset()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writing, e.broken = false, err != nil
	return err
}

func (e *sse) begin(ctx context.Context) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	e.writing = true
	e.limit(writeTime)
	return true
}

// interrupt ends a write that is under way.
func (e *sse) interrupt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.writing {
		e.limit(-time.Second)
	}
}

// finish leaves the connection so that the end of the stream still goes out, to
// a client that takes it.
func (e *sse) finish() {
	if !e.broken {
		e.limit(closeTime)
	}
}

// limit says how long writing may take. Without support for deadlines there is
// no limit to move. Connections go by the clock of the machine, whatever that
// shows.
func (e *sse) limit(d time.Duration) { _ = e.connection.SetWriteDeadline(clock.Mark().Add(d)) }
