package egress_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
)

// dialSlowServer dials a server that waits before it responds.
func dialSlowServer(wait time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			if _, err := http.ReadRequest(bufio.NewReader(server)); err != nil {
				return
			}
			time.Sleep(wait)
			_, _ = io.WriteString(server, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone")
		}()
		return client, nil
	}
}

// The first byte of a response may take as long as the whole request: a caller
// that allows ten minutes gets the response of a server that takes five.
func TestFirstByteMayTakeTheWholeTimeout(t *testing.T) {
	t.Parallel()
	const thinks = 5 * time.Minute
	for name, tc := range map[string]struct {
		context, request time.Duration
		want             time.Duration // until the request ends
		fails            bool
	}{
		"a context that allows it":           {context: 10 * time.Minute, want: thinks},
		"a request that allows it":           {request: 10 * time.Minute, want: thinks},
		"a context that does not":            {context: 15 * time.Second, want: 15 * time.Second, fails: true},
		"a request that does not":            {context: 10 * time.Minute, request: 15 * time.Second, want: 15 * time.Second, fails: true},
		"no limit but that of every call":    {want: time.Minute, fails: true},
		"a limit just below what it takes":   {context: thinks - time.Millisecond, want: thinks - time.Millisecond, fails: true},
		"a limit just above what it takes":   {context: thinks + time.Millisecond, want: thinks},
		"the shorter of two limits in force": {context: 20 * time.Second, request: time.Hour, want: 20 * time.Second, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := egress.New(egress.Config{Policy: internet})
				client.DialWith(dialSlowServer(thinks))
				ctx := t.Context()
				if tc.context > 0 {
					limited, cancel := context.WithTimeout(ctx, tc.context)
					defer cancel()
					ctx = limited
				}
				begun := time.Now()
				answer, err := client.Do(ctx, egress.Request{URL: "http://" + outside + "/", Timeout: tc.request})
				if took := time.Since(begun); took != tc.want {
					t.Errorf("it took %s, want %s", took, tc.want)
				}
				if tc.fails {
					wantError(t, err, egress.TimedOut)
				} else if err != nil || string(answer.Body) != "done" {
					t.Errorf("got %v, %v", answer, err)
				}
				client.Close()
				time.Sleep(thinks) // let the server respond
			})
		})
	}
}
