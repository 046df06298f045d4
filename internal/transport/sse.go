package transport

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
	// writeTimeout is how long a client may block a write before it is disconnected.
	writeTimeout = 5 * time.Second
	// closeTimeout limits the time to write the end of a stream.
	closeTimeout = time.Second
	// flushSize is the size at which the buffer is sent.
	flushSize = 32 << 10
)

// EventStream writes server-sent events to one client.
type EventStream struct {
	to         http.ResponseWriter
	connection *http.ResponseController
	buffer     bytes.Buffer

	mu      sync.Mutex
	writing bool
	broken  bool
}

func newSSE(to http.ResponseWriter) *EventStream {
	return &EventStream{to: to, connection: http.NewResponseController(to)}
}

// lineEnds normalizes every line ending that an event stream knows.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// Event buffers an event. Without an id, the position of the client stays the
// same.
func (e *EventStream) Event(ctx context.Context, name, id string, data []byte) error {
	fmt.Fprintf(&e.buffer, "event: %s\n", name)
	if id != "" {
		fmt.Fprintf(&e.buffer, "id: %s\n", id)
	}
	for line := range strings.SplitSeq(lineEnds.Replace(string(data)), "\n") {
		fmt.Fprintf(&e.buffer, "data: %s\n", line)
	}
	e.buffer.WriteByte('\n')
	if e.buffer.Len() < flushSize {
		return nil
	}
	return e.flush(ctx)
}

// Object buffers an event with a JSON value as its data.
func (e *EventStream) Object(ctx context.Context, name, id string, value any) error {
	data, err := strictjson.Encode(value)
	if err != nil {
		return err
	}
	return e.Event(ctx, name, id, data)
}

// Position sends an id without an event.
func (e *EventStream) Position(id string) { fmt.Fprintf(&e.buffer, "id: %s\n\n", id) }

// retry tells the client how long to wait before it reconnects.
func (e *EventStream) retry(after time.Duration) {
	fmt.Fprintf(&e.buffer, "retry: %d\n\n", after.Milliseconds())
}

// comment buffers a line that shows that the stream is alive.
func (e *EventStream) comment() { e.buffer.WriteString(":\n\n") }

// flush sends the buffer, unless the context has ended. When the context ends, a
// blocked write is interrupted.
func (e *EventStream) flush(ctx context.Context) error {
	if e.buffer.Len() == 0 {
		return ctx.Err()
	}
	if !e.begin(ctx) {
		return ctx.Err()
	}
	_, err := e.to.Write(e.buffer.Bytes())
	if err == nil {
		err = e.connection.Flush()
	}
	e.buffer.Reset()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writing, e.broken = false, err != nil
	return err
}

func (e *EventStream) begin(ctx context.Context) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	e.writing = true
	e.setDeadline(writeTimeout)
	return true
}

func (e *EventStream) interrupt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.writing {
		e.setDeadline(-time.Second)
	}
}

// finish gives an intact connection a moment to write the end of the stream.
func (e *EventStream) finish() {
	if !e.broken {
		e.setDeadline(closeTimeout)
	}
}

// setDeadline limits the time for writing. A connection without deadline support
// has no limit. Connections use the clock of the machine, even if it is wrong.
func (e *EventStream) setDeadline(d time.Duration) {
	_ = e.connection.SetWriteDeadline(clock.Monotonic().Add(d))
}
