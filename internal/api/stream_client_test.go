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

// sent is one event as a reader of server-sent events dispatches it.
type sent struct {
	name string
	data string
	id   string // the last one that the reader knows
}

// stream reads the events of an answer, and fails the test when one is not what
// the published document promises.
type stream struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Reader
	pattern  string
	lastID   string
	stop     context.CancelFunc
}

// follow opens a stream. Headers are given as pairs of name and value.
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
	response, err := c.server.http.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = response.Body.Close() })
	a := &answer{t: c.t, request: request, status: response.StatusCode, header: response.Header}
	if err := a.check(); err != nil {
		c.t.Error(err)
	}
	if !a.streamed() || response.Header.Get("X-Accel-Buffering") != "no" || response.Header.Get("Content-Encoding") != "" {
		c.t.Fatalf("%s is no stream: %d %v", path, response.StatusCode, response.Header)
	}
	_, pattern, _ := published().operation(http.MethodGet, request.URL.EscapedPath())
	return &stream{t: c.t, response: response, lines: bufio.NewReader(response.Body), pattern: pattern, lastID: request.Header.Get("Last-Event-ID"), stop: stop}
}

// follow opens the stream of a run that has a name, after what was seen last.
func (w *world) follow(name, lastID string) *stream {
	w.t.Helper()
	if lastID == "" {
		return w.client.follow(w.fill("/v1/runs/$" + name + "/events"))
	}
	return w.client.follow(w.fill("/v1/runs/$"+name+"/events"), "Last-Event-ID", lastID)
}

// next reads the next event; false when the stream is over.
func (s *stream) next() (sent, bool) {
	s.t.Helper()
	var (
		event sent
		data  []string
	)
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return sent{}, false // what was not completed does not count
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && data == nil:
			event = sent{}
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

func (s *stream) check(event sent) {
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

// want reads events up to one with the name.
func (s *stream) want(name string) sent {
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

// rest reads all events until the stream ends by itself.
func (s *stream) rest() []sent {
	s.t.Helper()
	var all []sent
	for {
		event, ok := s.next()
		if !ok {
			return all
		}
		all = append(all, event)
	}
}

// ends waits until the stream is over, at most for the given time.
func (s *stream) ends(within time.Duration) {
	s.t.Helper()
	begun := time.Now()
	s.rest()
	if took := time.Since(begun); took > within {
		s.t.Errorf("the stream went on for %v, want at most %v", took, within)
	}
}

// close goes away, as a client does whose network fails.
func (s *stream) close() {
	s.stop()
	_ = s.response.Body.Close()
}

// text returns a member of the data, as text.
func (e sent) text(t *testing.T, name string) string {
	t.Helper()
	return fmt.Sprint((&answer{t: t, body: []byte(e.data), request: &http.Request{}}).object()[name])
}

func names(events []sent) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.name)
	}
	return out
}
