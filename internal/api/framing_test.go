package api_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// dial opens a connection to the server that gives up after some seconds.
func (s *server) dial(t *testing.T, limit time.Duration) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// raw sends bytes and returns the answers that come until the server closes
// the connection.
func (s *server) raw(t *testing.T, text string) []*http.Response {
	t.Helper()
	conn := s.dial(t, 20*time.Second)
	go func() { _, _ = io.WriteString(conn, text) }() // the server may close before it has read all
	reader := bufio.NewReader(conn)
	var answers []*http.Response
	for {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && len(answers) == 0 {
				t.Logf("%.60q: %v", text, err)
			}
			return answers
		}
		_, _ = io.Copy(io.Discard, response.Body)
		answers = append(answers, response)
	}
}

// Requests whose framing is ambiguous are refused, and what follows on the
// connection is not read as another request.
func TestFraming(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	w := newWorld(t)
	key := "Authorization: Bearer " + w.key + "\r\n"
	post := "POST /v1/workflows HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + key
	// Would be answered 200 if it were taken for a request of its own.
	const smuggled = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for _, tc := range []struct{ name, text string }{
		{"two lengths", post + "Content-Length: 2\r\nContent-Length: 100\r\n\r\n{}" + smuggled},
		{"a list of lengths", post + "Content-Length: 2, 100\r\n\r\n{}" + smuggled},
		{"a negative length", post + "Content-Length: -1\r\n\r\n" + smuggled},
		{"a signed length", post + "Content-Length: +2\r\n\r\n{}" + smuggled},
		{"a length that is no number", post + "Content-Length: two\r\n\r\n{}" + smuggled},
		{"a length beyond all numbers", post + "Content-Length: 99999999999999999999\r\n\r\n{}" + smuggled},
		{"a space before the colon", post + "Content-Length : 2\r\n\r\n{}" + smuggled},
		{"an unknown transfer coding", post + "Transfer-Encoding: xchunked\r\n\r\n" + smuggled},
		{"two transfer codings", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + smuggled},
		{"two transfer headers", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled},
		{"a chunk size that is no number", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n" + smuggled},
		{"a negative chunk size", post + "Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n" + smuggled},
		{"a bare line feed after a chunk size", post + "Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n" + smuggled},
		{"a chunk that does not end", post + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx0\r\n\r\n" + smuggled},
		{"a header without a name", "GET /healthz HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n" + smuggled},
		{"a header with a space in its name", "GET /healthz HTTP/1.1\r\nHost: x\r\nA B: y\r\n\r\n" + smuggled},
		{"a header with a NUL", "GET /healthz HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n" + smuggled},
		{"a bare carriage return in a header", "GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\rTransfer-Encoding: chunked\r\n\r\n" + smuggled},
		{"no host", "GET /healthz HTTP/1.1\r\n\r\n" + smuggled},
		{"two hosts", "GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + smuggled},
		{"a malformed host", "GET /healthz HTTP/1.1\r\nHost: x y\r\n\r\n" + smuggled},
		{"an unknown version", "GET /healthz HTTP/3.7\r\nHost: x\r\n\r\n" + smuggled},
		{"no version", "GET /healthz\r\n\r\n" + smuggled},
		{"a malformed request line", "GET  /healthz  HTTP/1.1\r\nHost: x\r\n\r\n" + smuggled},
		{"a malformed escape", "GET /v1/%zz HTTP/1.1\r\nHost: x\r\n\r\n" + smuggled},
		{"the start of TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + smuggled},
		{"the start of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + smuggled},
		{"one header of 40 KiB", "GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 40<<10) + "\r\n\r\n" + smuggled},
		{"10,000 headers", "GET /healthz HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 10_000) + "\r\n" + smuggled},
		{"a path of 64 KiB", "GET /v1/" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n" + smuggled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			answers := s.raw(t, tc.text)
			if len(answers) > 1 {
				t.Errorf("it has %d answers: the second is %s", len(answers), answers[1].Status)
			}
			for _, response := range answers {
				if response.StatusCode < http.StatusBadRequest || response.StatusCode == http.StatusInternalServerError {
					t.Errorf("the answer is %s", response.Status)
				}
			}
		})
	}
	if got := len(w.call("GET", "/v1/workflows", "").items()); got != 0 {
		t.Errorf("there are %d workflows", got)
	}
}

// Of a length and chunks together the chunks count, and the connection ends
// with the answer.
func TestLengthAndChunks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := "POST /v1/workflows HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + w.key + "\r\n" +
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	answers := w.server.raw(t, text)
	if len(answers) == 0 || answers[0].StatusCode != http.StatusBadRequest {
		t.Fatalf("answers are %v", answers)
	}
	if len(answers) > 2 || len(answers) == 2 && answers[1].StatusCode != http.StatusOK {
		t.Errorf("the connection is out of step: %v", answers)
	}
}

// A body that ends too early is not taken for a shorter one.
func TestBodyCutShort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn := w.server.dial(t, 20*time.Second)
	text := "POST /v1/workflows HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + w.key + "\r\nContent-Length: 100\r\n\r\n"
	if _, err := io.WriteString(conn, text+`{"name": "n"}`); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != http.StatusBadRequest {
		t.Errorf("the answer is %v, %v", response, err)
	}
	if got := len(w.call("GET", "/v1/workflows", "").items()); got != 0 {
		t.Errorf("there are %d workflows", got)
	}
}

// The names of the headers are written as they are published.
func TestHeaderNamesOnTheWire(t *testing.T) {
	t.Parallel()
	conn := sharedServer(t).dial(t, 20*time.Second)
	if _, err := io.WriteString(conn, "GET /v1/workflows HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"HTTP/1.1 401 Unauthorized\r\n", "\r\nX-RateLimit-Limit: ", "\r\nX-RateLimit-Remaining: ", "\r\nX-RateLimit-Reset: ", "\r\nX-Request-Id: ", "\r\nWww-Authenticate: Bearer\r\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

// OPTIONS * is a path that does not exist, with the headers of every answer.
func TestOptionsOfTheServer(t *testing.T) {
	t.Parallel()
	answers := sharedServer(t).raw(t, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if len(answers) != 1 || answers[0].StatusCode != http.StatusNotFound || answers[0].Header.Get("X-Request-Id") == "" || answers[0].Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("answers are %v", answers)
	}
}

// Whoever is slow with headers is cut off after five seconds.
func TestSlowHeaders(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "GET /healthz HT", "GET /healthz HTTP/1.1\r\nHost: x\r\nA: "} {
		t.Run(fmt.Sprintf("after %q", text), func(t *testing.T) {
			t.Parallel()
			conn := sharedServer(t).dial(t, 15*time.Second)
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			answer, err := io.ReadAll(conn)
			if took := time.Since(begun); err != nil || took < 4*time.Second || took > 8*time.Second {
				t.Errorf("after %v: %v, %q", took, err, answer)
			}
		})
	}
}

// A client that goes away leaves no harm: a run is there with its event, or
// not at all.
func TestClientsThatGoAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf", waitStep)
	for range 20 {
		conn := w.server.dial(t, 10*time.Second)
		_, err := io.WriteString(conn, "POST "+w.fill("/v1/workflows/$wf/runs")+" HTTP/1.1\r\nHost: x\r\nPrefer: wait=60\r\nAuthorization: Bearer "+w.key+"\r\nContent-Length: 0\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w.call("GET", "/readyz", "").want(200)
	time.Sleep(50 * time.Millisecond)
	halves := w.server.rows(t, `SELECT id FROM runs r WHERE workspace_id = ?1 AND NOT EXISTS (SELECT 1 FROM events e WHERE e.run_id = r.id)
		UNION SELECT run_id FROM events e WHERE workspace_id = ?1 AND NOT EXISTS (SELECT 1 FROM runs r WHERE e.run_id = r.id)`, w.id)
	if len(halves) > 0 {
		t.Errorf("runs without an event, or events without a run: %v", halves)
	}
}
