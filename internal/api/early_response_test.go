package api_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A client that sends its whole request before it reads gets the response to a
// request that is rejected before its body was read.
func TestResponseBeforeTheEndOfTheBody(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	const size = 8 << 20
	key := "Authorization: Bearer " + w.key
	const media = "Content-Type: application/json"
	for _, tc := range []struct {
		name, target string
		headers      []string
		status       int
	}{
		{"too large", "POST /v1/workflows", []string{key, media}, 413},
		{"no key", "POST /v1/workflows", []string{media}, 401},
		{"an unknown path", "POST /v1/nothing", []string{key, media}, 404},
		{"another media type", "POST /v1/workflows", []string{key, "Content-Type: text/plain"}, 415},
		{"a method that is not allowed", "PUT /v1/workflows", []string{key, media}, 405},
		{"an unknown hook", "POST /hooks/unknown", []string{media}, 404},
		{"a body that is not used", "GET /v1/workflows", []string{key, media}, 200},
		{"no keep-alive", "POST /v1/workflows", []string{key, media, "Connection: close"}, 413},
	} {
		for framing, body := range map[string]string{
			fmt.Sprintf("Content-Length: %d", size): strings.Repeat("x", size),
			"Transfer-Encoding: chunked":            strings.Repeat(fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat("x", 64<<10)), size/(64<<10)) + "0\r\n\r\n",
		} {
			t.Run(tc.name+", "+framing, func(t *testing.T) {
				t.Parallel()
				head := tc.target + " HTTP/1.1\r\nHost: x\r\n" + framing + "\r\n" + strings.Join(tc.headers, "\r\n") + "\r\n\r\n"
				var err error
				for range 5 { // the server cuts off a client that stands still for too long
					if err = w.server.sendBeforeReading(t, head+body, tc.status); err == nil {
						return
					}
				}
				t.Error(err)
			})
		}
	}
}

// sendBeforeReading sends a whole request, then reads the response. It returns an
// error unless that is complete and has the status.
func (s *server) sendBeforeReading(t *testing.T, request string, status int) error {
	t.Helper()
	conn := s.dial(t, time.Minute)
	if _, err := io.WriteString(conn, request); err != nil {
		return fmt.Errorf("send the request: %w", err)
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return fmt.Errorf("read the response: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status || response.Header.Get("X-Request-Id") == "" || !strings.HasSuffix(string(text), "}\n") {
		return fmt.Errorf("got %s %s, %w", response.Status, text, err)
	}
	if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the connection ended with %w", err)
	}
	return nil
}

// After a rejected request with a small body the connection can be used again.
func TestConnectionIsReusedAfterASmallUnreadBody(t *testing.T) {
	t.Parallel()
	const body = "\r\nContent-Type: application/json\r\n"
	post := "POST /v1/workflows HTTP/1.1\r\nHost: x" + body
	responses := sharedServer(t).sendRaw(t, post+"Content-Length: 13\r\n\r\n"+`{"name": "n"}`+
		post+"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"+
		"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	var statuses []int
	for _, response := range responses {
		statuses = append(statuses, response.StatusCode)
	}
	if fmt.Sprint(statuses) != "[401 401 200]" {
		t.Errorf("the responses are %v", statuses)
	}
}
