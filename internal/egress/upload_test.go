package egress_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stepmill/stepmill/internal/egress"
)

// flushWriter sends each part of a response at once.
type flushWriter struct {
	io.Writer
	flush, close func()
}

func newFlushWriter(w http.ResponseWriter, encoding string) flushWriter {
	w.Header().Set("X-Name", headerValue)
	send := func() { _ = http.NewResponseController(w).Flush() }
	if encoding == "" {
		send()
		return flushWriter{w, send, func() {}}
	}
	w.Header().Set("Content-Encoding", encoding)
	send()
	zip := gzip.NewWriter(w)
	return flushWriter{zip, func() { zip.Flush(); send() }, func() { zip.Close() }}
}

// source is a request body that records whether it was closed.
type source struct {
	io.Reader
	closed atomic.Int64
}

func (s *source) open() (io.ReadCloser, error) { return s, nil }

// once opens a body that is sent only once.
func once(body io.ReadCloser) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return body, nil }
}

func (s *source) Close() error {
	s.closed.Add(1)
	return nil
}

func TestStreamsARequestBody(t *testing.T) {
	t.Parallel()
	server := serve(t, outside, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %d %v %s %v", r.Method, r.ContentLength, r.TransferEncoding, body, err)
	})
	client := newClient(t, egress.Config{Policy: internet})
	for length, want := range map[int64]string{5: "PUT 5 [] hello <nil>", 0: "PUT -1 [chunked] hello <nil>", -1: "PUT -1 [chunked] hello <nil>"} {
		for _, stream := range []bool{true, false} {
			body := &source{Reader: strings.NewReader("hello")}
			request := egress.Request{Workspace: "w", Method: "PUT", URL: server.URL, Upload: body.open, UploadLength: length, Header: http.Header{"Content-Length": {"3"}}}
			got := do(t, client, request, stream)
			if got != want || body.closed.Load() != 1 {
				t.Errorf("length %d: got %q, want %q; the body was closed %d times", length, got, want, body.closed.Load())
			}
		}
	}
	wantReleased(t, client, 6)
}

// do sends a request and returns the body of the response, streamed or not.
func do(t *testing.T, client *egress.Client, r egress.Request, stream bool) string {
	t.Helper()
	if stream {
		body, err := io.ReadAll(openStream(t, client, r))
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	response, err := client.Do(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return string(response.Body)
}

// Bytes go in both directions while both bodies are open.
func TestStreamsInBothDirections(t *testing.T) {
	t.Parallel()
	server := serve(t, outside, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		_ = control.Flush()
		part := make([]byte, 1)
		for {
			if _, err := r.Body.Read(part); err != nil {
				return
			}
			_, _ = w.Write(part)
			_ = control.Flush()
		}
	})
	client := newClient(t, egress.Config{Policy: internet})
	reader, writer := io.Pipe()
	stream := openStream(t, client, egress.Request{Method: "POST", URL: server.URL, Upload: once(reader)})
	for _, part := range []string{"a", "b", "c"} {
		if _, err := io.WriteString(writer, part); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 1)
		if _, err := io.ReadFull(stream, got); err != nil || string(got) != part {
			t.Fatalf("got %q, %v, want %q", got, err, part)
		}
	}
	writer.Close()
	if rest, err := io.ReadAll(stream); err != nil || len(rest) != 0 {
		t.Errorf("the end is %q, %v", rest, err)
	}
	wantReleased(t, client, 1)
}

// The server is not blamed for a request body that cannot be sent.
func TestUploadFailures(t *testing.T) {
	t.Parallel()
	// The server gets as much as was announced, so it must not respond before the
	// client finds more.
	server := serve(t, outside, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	broken := errors.New("the disk is broken")
	for name, tc := range map[string]struct {
		from   io.Reader
		length int64
	}{
		"shorter than announced": {strings.NewReader("hell"), 5},
		"longer than announced":  {strings.NewReader("hello!"), 5},
		"unreadable":             {io.MultiReader(strings.NewReader("he"), failing{broken}), 0},
		"unreadable at once":     {failing{broken}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, egress.Config{Policy: internet})
			body := &source{Reader: tc.from}
			_, err := client.Stream(t.Context(), egress.Request{Workspace: "w", Method: "POST", URL: server.URL, Upload: body.open, UploadLength: tc.length})
			if e := wantError(t, err, egress.InvalidRequest); !strings.Contains(e.Message, "the body of the request") {
				t.Errorf("the message is %q", e.Message)
			}
			if strings.Contains(name, "unreadable") && !errors.Is(err, broken) {
				t.Errorf("%v does not have its cause", err)
			}
			if body.closed.Load() != 1 {
				t.Errorf("the body was closed %d times", body.closed.Load())
			}
			wantReleased(t, client, 1)
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// The body of a rejected request is not opened, and a blocked read of a body ends with
// its request.
func TestUploadIsClosedWithItsRequest(t *testing.T) {
	t.Parallel()
	client := newClient(t, egress.Config{Policy: internet})
	_, err := client.Stream(t.Context(), egress.Request{Workspace: "w", URL: "http://127.0.0.1/", Upload: func() (io.ReadCloser, error) {
		t.Error("the body of a rejected request was opened")
		return http.NoBody, nil
	}})
	wantError(t, err, egress.Denied)
	received := make(chan struct{})
	server := serve(t, outside, func(_ http.ResponseWriter, r *http.Request) {
		close(received)
		_, _ = io.Copy(io.Discard, r.Body)
	})
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-received
		cancel()
	}()
	_, err = client.Stream(ctx, egress.Request{Workspace: "w", Method: "POST", URL: server.URL, Upload: once(reader)})
	wantError(t, err, egress.Cancelled)
	if _, err := io.WriteString(writer, "x"); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("writing to the body of a cancelled request: %v", err)
	}
	wantReleased(t, client, 2)
}

// A redirect that keeps the body sends it again from its beginning.
func TestRedirectOfAStreamedBody(t *testing.T) {
	t.Parallel()
	server := serve(t, outside, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/303":
			http.Redirect(w, r, "/end", http.StatusSeeOther)
		case "/307":
			http.Redirect(w, r, "/308", http.StatusTemporaryRedirect)
		case "/308":
			http.Redirect(w, r, "/end", http.StatusPermanentRedirect)
		default:
			fmt.Fprintf(w, "%s %d %s", r.Method, r.ContentLength, body)
		}
	})
	client := newClient(t, egress.Config{Policy: internet})
	var opened, closed atomic.Int64
	request := func(path string) egress.Request {
		return egress.Request{Workspace: "w", Method: "POST", URL: server.URL + path, FollowRedirects: true, UploadLength: 5, Upload: func() (io.ReadCloser, error) {
			opened.Add(1)
			return countedBody{strings.NewReader("hello"), &closed}, nil
		}}
	}
	for path, want := range map[string]string{"/303": "GET 0 ", "/307": "POST 5 hello", "/end": "POST 5 hello"} {
		if got := do(t, client, request(path), true); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if opened.Load() != 5 || closed.Load() != 5 {
		t.Errorf("the body was opened %d times and closed %d times, want 5", opened.Load(), closed.Load())
	}
	wantReleased(t, client, 3)
}

type countedBody struct {
	io.Reader
	closed *atomic.Int64
}

func (b countedBody) Close() error {
	b.closed.Add(1)
	return nil
}

// A body that cannot be opened again fails the request with its cause.
func TestUploadThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	server := serve(t, outside, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/end", http.StatusTemporaryRedirect)
	})
	client := newClient(t, egress.Config{Policy: internet})
	broken := errors.New("the disk is broken")
	for _, works := range []int{0, 1} {
		left := works
		_, err := client.Stream(t.Context(), egress.Request{Workspace: "w", Method: "POST", URL: server.URL, FollowRedirects: true, Upload: func() (io.ReadCloser, error) {
			if left == 0 {
				return nil, broken
			}
			left--
			return io.NopCloser(strings.NewReader("hello")), nil
		}})
		wantError(t, err, egress.InvalidRequest)
		if !errors.Is(err, broken) {
			t.Errorf("%v does not have its cause", err)
		}
	}
	wantReleased(t, client, 2)
}

// A server that resets the connection during the upload ends the request.
func TestResetDuringTheUpload(t *testing.T) {
	t.Parallel()
	client := newClient(t, egress.Config{Policy: internet})
	url := rawServer(t, func(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) })
	_, err := client.Stream(t.Context(), egress.Request{Workspace: "w", Method: "POST", URL: url, Upload: once(io.NopCloser(zeroes{}))})
	wantError(t, err, egress.ConnectionFailed)
	wantReleased(t, client, 1)
}
