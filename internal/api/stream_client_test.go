package api_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// sseEvent is one event as an EventSource dispatches it.
type sseEvent struct {
	name string
	data string
	id   string // the last event id
}

// stream reads the events of a response and fails the test if one does not
// match the OpenAPI document.
type stream struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Reader
	pattern  string
	lastID   string
	stop     context.CancelFunc
}

// follow opens a stream. Headers are pairs of name and value.
func (c client) follow(path string, headers ...string) *stream {
	c.t.Helper()
	ctx, stop := context.WithTimeout(c.t.Context(), time.Minute)
	c.t.Cleanup(stop)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server.url+path, http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.token != "" {
		request.Header.Set("Cookie", "__Host-stepmill="+c.token)
	} else {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	got, err := c.server.http.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = got.Body.Close() })
	a := &response{t: c.t, request: request, status: got.StatusCode, header: got.Header}
	if err := a.check(); err != nil {
		c.t.Error(err)
	}
	if !a.isStream() || got.Header.Get("X-Accel-Buffering") != "no" || got.Header.Get("Content-Encoding") != "" {
		c.t.Fatalf("%s is not a stream: %d %v", path, got.StatusCode, got.Header)
	}
	_, pattern, _ := published().operation(http.MethodGet, request.URL.EscapedPath())
	return &stream{t: c.t, response: got, lines: bufio.NewReader(got.Body), pattern: pattern, lastID: request.Header.Get("Last-Event-ID"), stop: stop}
}

// follow opens the stream of a named run after the given event id.
func (w *testWorkspace) follow(name, lastID string) *stream {
	w.t.Helper()
	if lastID == "" {
		return w.client.follow(w.expand("/v1/runs/$" + name + "/events"))
	}
	return w.client.follow(w.expand("/v1/runs/$"+name+"/events"), "Last-Event-ID", lastID)
}

// next reads the next event. It returns false at the end of the stream.
func (s *stream) next() (sseEvent, bool) {
	s.t.Helper()
	var (
		event sseEvent
		data  []string
	)
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return sseEvent{}, false // an incomplete event does not count
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && data == nil:
			event = sseEvent{}
		case line == "":
			event.data, event.id = strings.Join(data, "\n"), s.lastID
			s.check(event)
			return event, true
		case field == "event":
			event.name = value
		case field == "data":
			data = append(data, value)
		case field == "id":
			s.lastID = value
		case field == "retry" && value == "2000", field == "":
		default:
			s.t.Errorf("a line that is not one of server-sent events: %q", line)
		}
	}
}

func (s *stream) check(event sseEvent) {
	s.t.Helper()
	schema := published().root().at("paths", s.pattern, "get", "responses", "200", "content", "text/event-stream", "x-sse-events", event.name, "data")
	if schema.value == nil {
		s.t.Errorf("the event %s is not documented", event.name)
		return
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(event.data))
	if err == nil {
		err = schema.validate(value)
	}
	if err != nil {
		s.t.Errorf("the data of %s does not fit: %v: %s", event.name, err, event.data)
	}
}

// waitFor reads events up to one with the name.
func (s *stream) waitFor(name string) sseEvent {
	s.t.Helper()
	for {
		event, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ended without %s", name)
		}
		if event.name == name {
			return event
		}
	}
}

// readAll reads all events until the stream ends.
func (s *stream) readAll() []sseEvent {
	s.t.Helper()
	var all []sseEvent
	for {
		event, ok := s.next()
		if !ok {
			return all
		}
		all = append(all, event)
	}
}

// disconnect closes the connection abruptly.
func (s *stream) disconnect() {
	s.stop()
	_ = s.response.Body.Close()
}

// str returns a member of the data as a string.
func (e sseEvent) str(t *testing.T, name string) string {
	t.Helper()
	return fmt.Sprint((&response{t: t, body: []byte(e.data), request: &http.Request{}}).object()[name])
}

func eventNames(events []sseEvent) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.name)
	}
	return out
}
