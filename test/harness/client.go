package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Client calls the API of one server.
type Client struct {
	URL  string
	Key  string
	http *http.Client
}

// NewClient returns a client with its own connections.
func NewClient(url, key string) *Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	return &Client{URL: url, Key: key, http: &http.Client{Transport: transport, Timeout: Timeout}}
}

// With returns a client that shares the connections and uses another key.
func (c *Client) With(key string) *Client { return &Client{URL: c.URL, Key: key, http: c.http} }

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Response is a response with its whole body.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Decode decodes the JSON body.
func (r Response) Decode(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(r.Body, into); err != nil {
		t.Fatalf("decode the response: %v\n%s", err, r.Body)
	}
}

// Do sends a request. The body is encoded as JSON; nil means no body. Headers are pairs
// of name and value. An error means that there was no complete response: the request
// may or may not have taken effect.
func (c *Client) Do(ctx context.Context, method, path string, body any, headers ...string) (Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return Response{}, err
		}
		content = bytes.NewReader(text)
	}
	if body != nil {
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	response, err := c.Open(ctx, method, path, content, headers...)
	if err != nil {
		return Response{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return Response{}, err
	}
	return Response{response.StatusCode, response.Header, text}, nil
}

// Open sends a request and returns the response without reading it. The caller closes
// its body.
func (c *Client) Open(ctx context.Context, method, path string, content io.Reader, headers ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, content)
	if err != nil {
		return nil, err
	}
	if c.Key != "" {
		request.Header.Set("Authorization", "Bearer "+c.Key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return c.http.Do(request)
}

// Expect sends a request and fails the test unless the response has the status. A server
// on a busy machine may respond that it is unavailable: unless the test expects that,
// the request is repeated. Tests of such responses call Do.
func (c *Client) Expect(t testing.TB, status int, method, path string, body any, headers ...string) Response {
	t.Helper()
	send := c.DoUntilAvailable
	if status == http.StatusServiceUnavailable {
		send = c.Do
	}
	response, err := send(t.Context(), method, path, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if response.Status != status {
		t.Fatalf("%s %s: status %d, want %d\n%s", method, path, response.Status, status, response.Body)
	}
	return response
}

// repeatEvery is how often a request is repeated while the server is unavailable.
const repeatEvery = 200 * time.Millisecond

// DoUntilAvailable is like Do and repeats the request, for at most Timeout, while the
// response is that the server is unavailable. A POST that may have taken effect is only
// repeated if it has an Idempotency-Key.
func (c *Client) DoUntilAvailable(ctx context.Context, method, path string, body any, headers ...string) (Response, error) {
	safe := method != http.MethodPost
	for i := 0; i < len(headers); i += 2 {
		safe = safe || http.CanonicalHeaderKey(headers[i]) == "Idempotency-Key"
	}
	repeated := false
	for deadline := time.Now().Add(Timeout); ; repeated = true {
		response, err := c.Do(ctx, method, path, body, headers...)
		if err != nil || !response.isTemporary(safe, repeated) || time.Now().After(deadline) {
			return response, err
		}
		select {
		case <-ctx.Done():
			return response, ctx.Err()
		case <-time.After(repeatEvery):
		}
	}
}

// isTemporary reports whether a request should be sent again. It may have taken effect
// only if it is safe to repeat. An earlier attempt can still be in progress.
func (r Response) isTemporary(safe, repeated bool) bool {
	var body struct {
		Error struct{ Code, Message string }
	}
	switch r.Status {
	case http.StatusServiceUnavailable:
		_ = json.Unmarshal(r.Body, &body)
		return body.Error.Code == "unavailable" && (safe || !strings.Contains(body.Error.Message, "it is not known whether"))
	case http.StatusConflict:
		_ = json.Unmarshal(r.Body, &body)
		return repeated && body.Error.Code == "idempotency_in_progress"
	}
	return false
}
