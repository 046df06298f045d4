package fuzzapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// requestTimeout is how long a response may take. It only keeps a server that does
	// not respond from hanging the test.
	requestTimeout = time.Minute
	// waitTimeout is how long a response is awaited that may take long.
	waitTimeout = 3 * time.Second
	// streamTime is how long a stream is read.
	streamTime = 50 * time.Millisecond
	// maxResponse is how much of a response is read.
	maxResponse = 64 << 20
)

// Response is a response with its whole body, or with the beginning of a stream.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	Stream bool
}

// errGaveUp means that a response that may take long did not arrive.
var errGaveUp = errors.New("gave up waiting")

// Sender sends requests to a server.
type Sender struct {
	URL  string
	http *http.Client
}

// NewSender returns a sender with its own connections.
func NewSender(base string) *Sender {
	return &Sender{URL: base, http: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the idle connections.
func (s *Sender) Close() { s.http.CloseIdleConnections() }

// Send sends a request and reads the response.
func (s *Sender) Send(ctx context.Context, r *Request) (*Response, error) {
	timeout := requestTimeout
	if r.waits() {
		timeout = waitTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	send := s.sendHTTP
	if r.needsWire() {
		send = s.sendWire
	}
	response, err := send(limited, r, cancel)
	if err != nil && r.waits() && limited.Err() != nil && ctx.Err() == nil {
		return nil, errGaveUp
	}
	return response, err
}

func (s *Sender) sendHTTP(ctx context.Context, r *Request, cancel func()) (*Response, error) {
	var body io.Reader
	if len(r.Body) > 0 {
		body = bytes.NewReader(r.Body)
	}
	if r.Chunked {
		body = struct{ io.Reader }{bytes.NewReader(r.Body)} // hides the length
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, s.URL+r.Target, body)
	if err != nil {
		return nil, err
	}
	for _, f := range r.Header {
		request.Header.Add(f.Name, f.Value)
	}
	response, err := s.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return read(response, cancel)
}

// sendWire writes the request to a new connection.
func (s *Sender) sendWire(ctx context.Context, r *Request, cancel func()) (*Response, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	go func() {
		// An error means that the server stopped reading. Its response says why.
		_, _ = conn.Write(r.wire())
		if r.Cut > 0 || r.Raw != nil {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
	}()
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, &http.Request{Method: r.Method})
	for err == nil && response.StatusCode == http.StatusContinue {
		response, err = http.ReadResponse(reader, &http.Request{Method: r.Method})
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return read(response, cancel)
}

func read(response *http.Response, cancel func()) (*Response, error) {
	out := &Response{Status: response.StatusCode, Header: response.Header}
	out.Stream = strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
	if out.Stream {
		defer time.AfterFunc(streamTime, cancel).Stop()
	}
	var err error
	out.Body, err = io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if out.Stream {
		err = nil // it ends when it is cancelled
	}
	return out, err
}
