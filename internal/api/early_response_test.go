package api_test

import (
	"bufio"
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
				conn := w.server.dial(t, 30*time.Second)
				head := tc.target + " HTTP/1.1\r\nHost: x\r\n" + framing + "\r\n" + strings.Join(tc.headers, "\r\n") + "\r\n\r\n"
				if _, err := io.WriteString(conn, head+body); err != nil {
					t.Fatalf("send the request: %v", err)
				}
				reader := bufio.NewReader(conn)
				response, err := http.ReadResponse(reader, nil)
				if err != nil {
					t.Fatalf("read the response: %v", err)
				}
				text, err := io.ReadAll(response.Body)
				if err != nil || response.StatusCode != tc.status || response.Header.Get("X-Request-Id") == "" || !strings.HasSuffix(string(text), "}\n") {
					t.Errorf("got %s %s, %v", response.Status, text, err)
				}
				if _, err := reader.ReadByte(); err != io.EOF {
					t.Errorf("the connection ended with %v", err)
				}
			})
		}
	}
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
