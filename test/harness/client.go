package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
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

// Expect sends a request and fails the test unless the response has the status.
func (c *Client) Expect(t testing.TB, status int, method, path string, body any, headers ...string) Response {
	t.Helper()
	response, err := c.Do(t.Context(), method, path, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if response.Status != status {
		t.Fatalf("%s %s: status %d, want %d\n%s", method, path, response.Status, status, response.Body)
	}
	return response
}
