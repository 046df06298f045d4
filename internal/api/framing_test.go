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

	"github.com/stepmill/stepmill/test/lane"
)

// dial opens a connection to the server with a deadline.
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

// sendRaw sends bytes and returns all responses until the server closes the
// connection.
func (s *server) sendRaw(t *testing.T, text string) []*http.Response {
	t.Helper()
	conn := s.dial(t, 5*time.Minute)
	go func() { _, _ = io.WriteString(conn, text) }() // the server may close early
	reader := bufio.NewReader(conn)
	var responses []*http.Response
	for {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && len(responses) == 0 {
				t.Logf("%.60q: %v", text, err)
			}
			return responses
		}
		_, _ = io.Copy(io.Discard, response.Body)
		responses = append(responses, response)
	}
}

// Requests with ambiguous framing are rejected, and the rest of the connection
// is not read as another request.
func TestFraming(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	w := newTestWorkspace(t)
	key := "Authorization: Bearer " + w.key + "\r\n"
	post := "POST /v1/workflows HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + key
	// Would get a 200 if it were read as a separate request.
	const smuggled = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for _, tc := range []struct{ name, text string }{
		{"two lengths", post + "Content-Length: 2\r\nContent-Length: 100\r\n\r\n{}" + smuggled},
		{"a list of lengths", post + "Content-Length: 2, 100\r\n\r\n{}" + smuggled},
		{"a negative length", post + "Content-Length: -1\r\n\r\n" + smuggled},
		{"a signed length", post + "Content-Length: +2\r\n\r\n{}" + smuggled},
		{"a length that is not a number", post + "Content-Length: two\r\n\r\n{}" + smuggled},
		{"a length beyond all numbers", post + "Content-Length: 99999999999999999999\r\n\r\n{}" + smuggled},
		{"a space before the colon", post + "Content-Length : 2\r\n\r\n{}" + smuggled},
		{"an unknown transfer coding", post + "Transfer-Encoding: xchunked\r\n\r\n" + smuggled},
		{"two transfer codings", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + smuggled},
		{"two transfer headers", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled},
		{"a chunk size that is not a number", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n" + smuggled},
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
			responses := s.sendRaw(t, tc.text)
			if len(responses) > 1 {
				t.Errorf("got %d responses, the second is %s", len(responses), responses[1].Status)
			}
			for _, response := range responses {
				if response.StatusCode < http.StatusBadRequest || response.StatusCode == http.StatusInternalServerError {
					t.Errorf("the response is %s", response.Status)
				}
			}
		})
	}
	if got := len(w.call("GET", "/v1/workflows", "").items()); got != 0 {
		t.Errorf("there are %d workflows", got)
	}
}

// With both Content-Length and chunked encoding, the chunks win and the
// connection is closed.
func TestContentLengthAndChunked(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	text := "POST /v1/workflows HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + w.key + "\r\n" +
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	responses := w.server.sendRaw(t, text)
	if len(responses) == 0 || responses[0].StatusCode != http.StatusBadRequest {
		t.Fatalf("responses are %v", responses)
	}
	if len(responses) > 2 || len(responses) == 2 && responses[1].StatusCode != http.StatusOK {
		t.Errorf("the connection is out of step: %v", responses)
	}
}

// A truncated body is not accepted as a shorter one.
func TestTruncatedBody(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
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
		t.Errorf("the response is %v, %v", response, err)
	}
	if got := len(w.call("GET", "/v1/workflows", "").items()); got != 0 {
		t.Errorf("there are %d workflows", got)
	}
}

// Header names are sent as documented.
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

// OPTIONS * is an unknown path and gets the headers of every response.
func TestOptionsAsterisk(t *testing.T) {
	t.Parallel()
	responses := sharedServer(t).sendRaw(t, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if len(responses) != 1 || responses[0].StatusCode != http.StatusNotFound || responses[0].Header.Get("X-Request-Id") == "" || responses[0].Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("responses are %v", responses)
	}
}

// The response to a header that is too large ends properly, although the rest of the
// request is not read.
func TestOversizedHeaderIsAnswered(t *testing.T) {
	t.Parallel()
	conn := sharedServer(t).dial(t, time.Minute)
	go func() {
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Large: "+strings.Repeat("x", 200<<10)+"\r\n\r\n") // the server may close early
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %s, %v", response.Status, err)
	}
}

// A client that does not finish its headers is disconnected.
func TestSlowHeaders(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	for _, text := range []string{"", "GET /healthz HT", "GET /healthz HTTP/1.1\r\nHost: x\r\nA: "} {
		t.Run(fmt.Sprintf("after %q", text), func(t *testing.T) {
			t.Parallel()
			conn := sharedServer(t).dial(t, 2*time.Minute)
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(conn); err != nil {
				t.Errorf("the connection ended with %v after %q", err, rest)
			}
		})
	}
}

// A client that disconnects leaves either a run with its event or nothing.
func TestClientDisconnects(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", waitStep)
	for range 20 {
		conn := w.server.dial(t, 5*time.Minute)
		_, err := io.WriteString(conn, "POST "+w.expand("/v1/workflows/$wf/runs")+" HTTP/1.1\r\nHost: x\r\nPrefer: wait=60\r\nAuthorization: Bearer "+w.key+"\r\nContent-Length: 0\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w.call("GET", "/readyz", "").wantStatus(200)
	time.Sleep(50 * time.Millisecond)
	halves := w.server.query(t, `SELECT id FROM runs r WHERE workspace_id = ?1 AND NOT EXISTS (SELECT 1 FROM events e WHERE e.run_id = r.id)
		UNION SELECT run_id FROM events e WHERE workspace_id = ?1 AND NOT EXISTS (SELECT 1 FROM runs r WHERE e.run_id = r.id)`, w.id)
	if len(halves) > 0 {
		t.Errorf("runs without an event, or events without a run: %v", halves)
	}
}
