package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"
)

// Client calls the API of one server.
type Client struct {
	URL  string
	Key  string
	http *http.Client
}

// NewClient makes a client with connections of its own.
func NewClient(url, key string) *Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	return &Client{URL: url, Key: key, http: &http.Client{Transport: transport, Timeout: time.Minute}}
}

// With makes a client that shares the connections but shows another key.
func (c *Client) With(key string) *Client { return &Client{URL: c.URL, Key: key, http: c.http} }

// Answer is a response that was read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Decode reads the JSON of the body.
func (a Answer) Decode(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, into); err != nil {
		t.Fatalf("decode the answer: %v\n%s", err, a.Body)
	}
}

// Do sends a request. The body is sent as JSON, or as it is when it is
// json.RawMessage; nil means none. Headers are pairs of name and value. An
// error means that there was no whole answer: whether the request had its
// effect is not known.
func (c *Client) Do(ctx context.Context, method, path string, body any, headers ...string) (Answer, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return Answer{}, err
		}
		content = bytes.NewReader(text)
	}
	if body != nil {
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	response, err := c.Open(ctx, method, path, content, headers...)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, err
	}
	return Answer{response.StatusCode, response.Header, text}, nil
}

// Open sends a request and returns its answer unread. The caller closes its
// body.
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

// Expect sends a request and ends the test unless it is answered with the
// status.
func (c *Client) Expect(t testing.TB, status int, method, path string, body any, headers ...string) Answer {
	t.Helper()
	answer, err := c.Do(t.Context(), method, path, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if answer.Status != status {
		t.Fatalf("%s %s: status %d, want %d\n%s", method, path, answer.Status, status, answer.Body)
	}
	return answer
}
