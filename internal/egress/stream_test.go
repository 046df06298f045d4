package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
)

// openStream opens a stream that must begin.
func openStream(t *testing.T, client *egress.Client, r egress.Request) *egress.Stream {
	t.Helper()
	r.Workspace = "w"
	stream, err := client.Stream(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stream.Close() })
	return stream
}

// wantReleased checks that no request uses the workspace's connections, and that
// each was counted once.
func wantReleased(t *testing.T, client *egress.Client, requests int64) {
	t.Helper()
	if n := client.Users("w"); n != 0 {
		t.Errorf("%d requests still use the connections of the workspace", n)
	}
	var counted int64
	for _, n := range client.Calls() {
		counted += n
	}
	if counted != requests {
		t.Errorf("%d requests were counted, want %d: %v", counted, requests, client.Calls())
	}
}

// Each part of a response can be read before the server sends the next.
func TestStreamsAResponseAsItArrives(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	secure := &tls.Config{Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour), outside)}}
	for name, config := range map[string]*tls.Config{"HTTP/1.1": nil, "HTTP/2": secure} {
		for _, encoding := range []string{"", "gzip"} {
			t.Run(name+" "+encoding, func(t *testing.T) {
				t.Parallel()
				next := make(chan struct{})
				url := streamServer(t, config, func(w http.ResponseWriter, _ *http.Request) {
					out := newFlushWriter(w, encoding)
					for _, part := range []string{"one", "two", "three"} {
						<-next
						fmt.Fprint(out, part)
						out.flush()
					}
					out.close()
				})
				client := newClient(t, egress.Config{Policy: internet, RootCAs: ca.pool()})
				stream := openStream(t, client, egress.Request{URL: url})
				if stream.Status != http.StatusOK || stream.URL != url || stream.Header.Get("X-Name") != headerValue || stream.Header.Get("Content-Encoding") != "" {
					t.Errorf("the response is %d %s %v", stream.Status, stream.URL, stream.Header)
				}
				if n := client.Users("w"); n != 1 {
					t.Errorf("%d requests use the connections before the end, want 1", n)
				}
				for _, part := range []string{"one", "two", "three"} {
					next <- struct{}{}
					got := make([]byte, len(part))
					if _, err := io.ReadFull(stream, got); err != nil || string(got) != part {
						t.Fatalf("read %q, %v, want %q", got, err, part)
					}
				}
				if n, err := stream.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
					t.Errorf("the end is %d, %v", n, err)
				}
				wantReleased(t, client, 1)
				if n, err := stream.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) || stream.Close() != nil {
					t.Errorf("after the end: %d, %v", n, err)
				}
				wantReleased(t, client, 1)
			})
		}
	}
}

const headerValue = "value"

func streamServer(t *testing.T, config *tls.Config, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	server.Listener = listen(t, outside+":0")
	if config == nil {
		server.Start()
	} else {
		server.TLS, server.EnableHTTP2 = config, true
		server.StartTLS()
	}
	t.Cleanup(server.Close)
	return server.URL
}

// Hostile servers end a stream with the right error, and everything is released.
func TestStreamFromHostileServers(t *testing.T) {
	t.Parallel()
	forbidden := newDecoy(t)
	bomb := bytes.Repeat(gzipped(1<<20), 64)
	for name, tc := range map[string]struct {
		write   func(net.Conn)
		code    egress.Code
		read    int64 // bytes before the error; -1: unknown
		opens   bool  // the error comes while the body is read
		message string
	}{
		"endless body":        {endless("HTTP/1.1 200 OK\r\n\r\n", "aaaaaaaa"), egress.ResponseTooLarge, 1000, true, "longer than 1000 bytes"},
		"endless chunks":      {endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "8\r\naaaaaaaa\r\n"), egress.ResponseTooLarge, 1000, true, ""},
		"gzip bomb":           {send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + string(bomb)), egress.ResponseTooLarge, 1000, true, ""},
		"gzip of nothing":     {endless("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", string(gzipped(0))), egress.ResponseTooLarge, 0, true, ""},
		"not gzip":            {send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n01234567890123456789"), egress.InvalidResponse, 0, true, ""},
		"truncated gzip":      {send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + string(gzipped(100)[:15])), egress.InvalidResponse, -1, true, "cannot be decompressed"},
		"truncated body":      {send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), egress.ConnectionFailed, 3, true, "was lost"},
		"truncated chunk":     {send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nabc"), egress.ConnectionFailed, 3, true, "was lost"},
		"invalid chunk":       {send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzzz\r\n"), egress.InvalidResponse, 3, true, ""},
		"reset in the body":   {reset("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), egress.ConnectionFailed, -1, true, "was lost"},
		"closed at once":      {send(""), egress.ConnectionFailed, 0, false, ""},
		"endless headers":     {endless("HTTP/1.1 200 OK\r\n", "X-Header: value\r\n"), egress.ResponseTooLarge, 0, false, ""},
		"not HTTP":            {send("SSH-2.0-OpenSSH\r\n\r\n"), egress.InvalidResponse, 0, false, ""},
		"another protocol":    {send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), egress.InvalidResponse, 0, false, "another protocol"},
		"forbidden redirect":  {send(fmt.Sprintf("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/\r\n\r\n", forbidden.port)), egress.Denied, 0, false, ""},
		"redirect to a file":  {send("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n"), egress.Denied, 0, false, ""},
		"redirects in a loop": {send("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), egress.TooManyRedirects, 0, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, egress.Config{Policy: internet})
			stream, err := client.Stream(t.Context(), egress.Request{Workspace: "w", URL: rawServer(t, tc.write), FollowRedirects: true, MaxBody: 1000})
			if tc.opens != (err == nil) {
				t.Fatalf("opening the stream: %v", err)
			}
			if tc.opens {
				var n int64
				if n, err = io.Copy(io.Discard, stream); tc.read >= 0 && n != tc.read {
					t.Errorf("read %d bytes, want %d", n, tc.read)
				}
				if _, again := stream.Read(make([]byte, 1)); !errors.Is(again, err) {
					t.Errorf("reading again: %v, want %v", again, err)
				}
				stream.Close()
			}
			if e := wantError(t, err, tc.code); !strings.Contains(e.Message, tc.message) {
				t.Errorf("the message is %q", e.Message)
			}
			wantReleased(t, client, 1)
		})
	}
}

func send(text string) func(net.Conn) {
	return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
}

func endless(head, part string) func(net.Conn) {
	return func(conn net.Conn) {
		_, err := io.WriteString(conn, head)
		for many := strings.Repeat(part, 100); err == nil; _, err = io.WriteString(conn, many) {
		}
	}
}

// reset sends text and then resets the connection.
func reset(text string) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = io.WriteString(conn, text)
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
}

func TestStreamTruncates(t *testing.T) {
	t.Parallel()
	client := newClient(t, egress.Config{Policy: internet})
	for name, head := range map[string]string{"plain": "HTTP/1.1 200 OK\r\n\r\n", "gzip": "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"} {
		part := "aaaaaaaa"
		if name == "gzip" {
			part = string(gzipped(1 << 10))
		}
		stream := openStream(t, client, egress.Request{URL: rawServer(t, endless(head, part)), MaxBody: 1000, Truncate: true})
		if body, err := io.ReadAll(stream); err != nil || len(body) != 1000 || !stream.Truncated() {
			t.Errorf("%s: %d bytes, %v, truncated: %t", name, len(body), err, stream.Truncated())
		}
	}
	stream := openStream(t, client, egress.Request{URL: rawServer(t, send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"+strings.Repeat("a", 1000))), MaxBody: 1000, Truncate: true})
	if body, err := io.ReadAll(stream); err != nil || len(body) != 1000 || stream.Truncated() {
		t.Errorf("a body of the maximum size: %d bytes, %v, truncated: %t", len(body), err, stream.Truncated())
	}
	wantReleased(t, client, 3)
}

// dialPipe connects requests to a server function over a pipe, for use with a fake
// clock.
func dialPipe(serve func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			if _, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
				serve(server)
			}
		}()
		return client, nil
	}
}

func TestStreamTimeouts(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n"
	after := func(wait time.Duration, parts ...string) func(net.Conn) {
		return func(conn net.Conn) {
			for _, part := range parts {
				time.Sleep(wait)
				if _, err := io.WriteString(conn, part); err != nil {
					return
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		serve   func(net.Conn)
		request egress.Request
		context time.Duration
		pause   time.Duration // of the reader, before each read
		want    time.Duration // until the stream ends
		body    string
		fails   bool
		stalled bool
	}{
		"headers in time":                  {serve: after(9*time.Second, head+"done"), request: egress.Request{Timeout: 10 * time.Second}, want: 9 * time.Second, body: "done"},
		"headers too late":                 {serve: after(time.Hour, head), request: egress.Request{Timeout: 10 * time.Second}, want: 10 * time.Second, fails: true},
		"headers later than the default":   {serve: after(time.Hour, head), want: time.Minute, fails: true},
		"headers later than the context":   {serve: after(time.Hour, head), context: 20 * time.Second, want: 20 * time.Second, fails: true},
		"a body that outlasts the timeout": {serve: after(9*time.Second, head, "d", "o", "n", "e"), request: egress.Request{Timeout: 10 * time.Second, Stall: 10 * time.Second}, want: 45 * time.Second, body: "done"},
		"a body that outlasts the context": {serve: after(9*time.Second, head, "d", "o", "n", "e"), context: 20 * time.Second, want: 20 * time.Second, body: "d", fails: true},
		"a stall before the body":          {serve: after(time.Second, head, "d"), request: egress.Request{Stall: 900 * time.Millisecond}, want: 1900 * time.Millisecond, fails: true, stalled: true},
		"a stall after the first part":     {serve: func(c net.Conn) { send(head + "do")(c); time.Sleep(time.Hour) }, request: egress.Request{Stall: 5 * time.Second}, want: 5 * time.Second, body: "do", fails: true, stalled: true},
		"a stall longer than the default":  {serve: func(c net.Conn) { send(head + "do")(c); time.Sleep(time.Hour) }, want: time.Minute, body: "do", fails: true, stalled: true},
		"a reader slower than the stall":   {serve: after(time.Second, head, "do", "ne"), request: egress.Request{Stall: 5 * time.Second}, pause: time.Minute, want: 2*time.Minute + time.Second, body: "done"},
		"a compressed body that is stalled": {serve: func(c net.Conn) {
			send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f")(c)
			time.Sleep(time.Hour)
		}, request: egress.Request{Stall: 5 * time.Second}, want: 5 * time.Second, fails: true, stalled: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := egress.New(egress.Config{Policy: internet})
				client.DialWith(dialPipe(tc.serve))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.context > 0 {
					ctx, cancel = context.WithTimeout(ctx, tc.context)
					defer cancel()
				}
				begun := time.Now()
				tc.request.Workspace, tc.request.URL = "w", "http://"+outside+"/"
				stream, err := client.Stream(ctx, tc.request)
				var body []byte
				if err == nil {
					body, err = readPausing(stream, tc.pause)
				}
				if took := time.Since(begun); took != tc.want || string(body) != tc.body {
					t.Errorf("read %q in %s, want %q in %s", body, took, tc.body, tc.want)
				}
				if errors.Is(err, egress.ErrStalled) != tc.stalled {
					t.Errorf("the error is %v", err)
				}
				if tc.fails {
					wantError(t, err, egress.TimedOut)
				} else if err != nil {
					t.Error(err)
				}
				wantReleased(t, client, 1)
				client.Close()
				time.Sleep(2 * time.Hour) // let the server end
			})
		})
	}
}

// readPausing reads a stream to its end, with a pause before each read.
func readPausing(from io.Reader, pause time.Duration) ([]byte, error) {
	var body []byte
	for {
		time.Sleep(pause)
		part := make([]byte, 512)
		n, err := from.Read(part)
		body = append(body, part[:n]...)
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return body, err
		}
	}
}

// A blocked Read ends when the context or the stream does.
func TestCancelEndsABlockedRead(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	secure := &tls.Config{Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour), outside)}}
	for name, config := range map[string]*tls.Config{"HTTP/1.1": nil, "HTTP/2": secure} {
		for _, how := range []string{"cancel", "close"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				url := streamServer(t, config, func(w http.ResponseWriter, r *http.Request) {
					fmt.Fprint(w, "begun")
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done() // the client is gone
				})
				client := newClient(t, egress.Config{Policy: internet, RootCAs: ca.pool()})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stream, err := client.Stream(ctx, egress.Request{Workspace: "w", URL: url})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(stream, make([]byte, len("begun"))); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error)
				go func() {
					_, err := stream.Read(make([]byte, 1))
					ended <- err
				}()
				if how == "cancel" {
					cancel()
				} else {
					stream.Close()
				}
				wantError(t, <-ended, egress.Cancelled)
				_, err = stream.Read(make([]byte, 1))
				wantError(t, err, egress.Cancelled)
				stream.Close()
				stream.Close()
				wantReleased(t, client, 1)
			})
		}
	}
}

// A stream that is neither read nor closed gives its connection back when its
// context ends.
func TestCancelReleasesAnAbandonedStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := egress.New(egress.Config{Policy: internet})
		client.DialWith(dialPipe(func(conn net.Conn) {
			send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")(conn)
			_, _ = conn.Read(make([]byte, 1)) // until the client closes the connection
		}))
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := client.Stream(ctx, egress.Request{Workspace: "w", URL: "http://" + outside + "/"})
		if err != nil {
			t.Fatal(err)
		}
		if n := client.Users("w"); n != 1 {
			t.Errorf("%d requests use the connections, want 1", n)
		}
		cancel()
		synctest.Wait()
		if n := client.Users("w"); n != 0 {
			t.Errorf("%d requests use the connections after the cancellation", n)
		}
		stream.Close()
		wantReleased(t, client, 1)
		client.Close()
	})
}

// A connection is used again after a stream was read to its end, and only then.
func TestStreamReusesConnections(t *testing.T) {
	t.Parallel()
	url, conns := connCountingServer(t, nil)
	client := newClient(t, egress.Config{Policy: internet})
	for range 5 {
		if _, err := io.Copy(io.Discard, openStream(t, client, egress.Request{URL: url})); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for streams one after another", n)
	}
	openStream(t, client, egress.Request{URL: url}).Close()
	if _, err := io.Copy(io.Discard, openStream(t, client, egress.Request{URL: url})); err != nil {
		t.Fatal(err)
	}
	if n := conns.Load(); n != 2 {
		t.Errorf("%d connections after a stream was closed early, want 2", n)
	}
	wantReleased(t, client, 7)
}
