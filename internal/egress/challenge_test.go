package egress_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
)

// asked is a credential that a server asks for with the header X-Ask: its answer repeats
// what was asked.
type asked struct{ testCredential }

func (asked) Apply(*http.Request) error { return nil }

func (a asked) Answer(r *http.Request, response http.Header, isRetry bool) (bool, error) {
	ask := response.Get("X-Ask")
	if ask == "" || isRetry && !strings.HasPrefix(ask, "again") {
		return false, nil
	}
	if ask == "riddle" {
		return false, errors.New("the riddle is not supported")
	}
	r.Header.Set("Authorization", secret+" "+ask)
	return true, nil
}

// asker is a server that responds with 401 until it has its answer.
type asker struct {
	mu       sync.Mutex
	asks     []string // what it asks for, one after another
	received []string // the answers and bodies of its requests
	expects  []string // the header Expect of its requests
	isEarly  bool     // it asks before it has read the body
	isOld    bool     // it responds with 417 to requests that announce their body
}

func (a *asker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.isOld && r.Header.Get("Expect") != "" {
		w.WriteHeader(http.StatusExpectationFailed)
		return
	}
	answer := strings.TrimPrefix(r.Header.Get("Authorization"), secret+" ")
	var body []byte
	switch {
	case !a.isEarly:
		body, _ = io.ReadAll(r.Body)
	case answer != "":
		io.Copy(io.Discard, r.Body)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.received = append(a.received, answer+":"+string(body))
	a.expects = append(a.expects, r.Header.Get("Expect"))
	if n := len(a.received); n <= len(a.asks) {
		w.Header().Set("X-Ask", a.asks[n-1])
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, strings.Repeat("please ", 1000))
	}
}

// TestAnswersChallenges checks that a challenge is answered once, and once more if the
// server says that it only has a newer one.
func TestAnswersChallenges(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	for name, tc := range map[string]struct {
		asks     []string
		received string
		status   int
	}{
		"none":           {nil, ":body", 200},
		"one":            {[]string{"a"}, ":body a:body", 200},
		"rejected":       {[]string{"a", "b", "c"}, ":body a:body", 401},
		"a newer one":    {[]string{"a", "again"}, ":body a:body again:body", 200},
		"endless":        {[]string{"again1", "again2", "again3", "again4"}, ":body again1:body again2:body", 401},
		"not a question": {[]string{""}, ":body", 401},
	} {
		for _, secure := range []bool{false, true} {
			for _, streamed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, TLS %t, streamed %t", name, secure, streamed), func(t *testing.T) {
					t.Parallel()
					server := &asker{asks: tc.asks}
					target := serve(t, outside, server.ServeHTTP).URL
					if secure { // with HTTP/2
						target = fmt.Sprintf("https://%s:%d", outside, serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour), outside)}}, server.ServeHTTP))
					}
					request := egress.Request{
						Workspace: "w", Method: http.MethodPost, URL: target + "/path", Timeout: 3 * time.Minute,
						Credential: asked{testCredential{hosts: []string{strings.SplitN(target, "//", 2)[1]}}},
					}
					if streamed {
						request.Upload = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("body")), nil }
					} else {
						request.Body = []byte("body")
					}
					resp, err := newClient(t, egress.Config{Policy: internet, RootCAs: ca.pool()}).Do(t.Context(), request)
					if err != nil {
						t.Fatal(err)
					}
					server.mu.Lock()
					defer server.mu.Unlock()
					if got := strings.Join(server.received, " "); got != tc.received || resp.Status != tc.status {
						t.Errorf("%d, the server received %s", resp.Status, got)
					}
					for i, expect := range server.expects {
						if !secure && (expect != "") != (streamed && i == 0) { // HTTP/2 hides it from handlers
							t.Errorf("request %d expects %q", i, expect)
						}
					}
				})
			}
		}
	}
}

// TestUploadIsSentOnce checks that a server which rejects a request by its header does not
// receive a large body that is of no use.
func TestUploadIsSentOnce(t *testing.T) {
	t.Parallel()
	server := &asker{asks: []string{"a"}, isEarly: true}
	target := serve(t, outside, server.ServeHTTP)
	var mu sync.Mutex
	read := 0
	length := 32 << 20 // more than the buffers of a connection
	resp, err := newClient(t, egress.Config{Policy: internet}).Do(t.Context(), egress.Request{
		Workspace: "w", Method: http.MethodPut, URL: target.URL, Credential: asked{testCredential{hosts: []string{target.Listener.Addr().String()}}}, Timeout: 3 * time.Minute,
		UploadLength: int64(length), Upload: func() (io.ReadCloser, error) {
			return io.NopCloser(io.TeeReader(io.LimitReader(zeroes{}, int64(length)), counter(func(n int) {
				mu.Lock()
				defer mu.Unlock()
				read += n
			}))), nil
		},
	})
	if err != nil || resp.Status != http.StatusOK {
		t.Fatalf("%+v, %v", resp, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if read >= 2*length {
		t.Errorf("%d bytes of %d were sent", read, length)
	}
}

// TestServerThatExpectsNothing checks that a body is sent again without being announced to
// a server that does not know this.
func TestServerThatExpectsNothing(t *testing.T) {
	t.Parallel()
	server := &asker{asks: []string{"a"}, isOld: true}
	target := serve(t, outside, server.ServeHTTP)
	resp, err := newClient(t, egress.Config{Policy: internet}).Do(t.Context(), egress.Request{
		Workspace: "w", Method: http.MethodPut, URL: target.URL, Credential: asked{testCredential{hosts: []string{target.Listener.Addr().String()}}}, Timeout: 3 * time.Minute,
		Upload: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("body")), nil },
	})
	if got := strings.Join(server.received, " "); err != nil || resp.Status != http.StatusOK || got != ":body a:body" {
		t.Errorf("%+v, %v, the server received %s", resp, err, got)
	}
}

// counter counts the bytes that are written to it.
type counter func(n int)

func (c counter) Write(p []byte) (int, error) {
	c(len(p))
	return len(p), nil
}

// TestAnswersOnlyItsHosts checks that a server behind a redirect gets no answer, whatever it
// asks, and that what cannot be answered is an error.
func TestAnswersOnlyItsHosts(t *testing.T) {
	t.Parallel()
	other := &asker{asks: []string{"a", "a"}}
	elsewhere := serve(t, outside, other.ServeHTTP)
	first := serve(t, outside, http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect).ServeHTTP)
	riddle := serve(t, outside, (&asker{asks: []string{"riddle"}}).ServeHTTP)
	client := newClient(t, egress.Config{Policy: internet})
	send := func(url string, hosts ...string) (*egress.Response, error) {
		return client.Do(t.Context(), egress.Request{
			Workspace: "w", URL: url, Credential: asked{testCredential{hosts: hosts}}, FollowRedirects: true, Timeout: 3 * time.Minute,
		})
	}
	if resp, err := send(first.URL, first.Listener.Addr().String()); err != nil || resp.Status != http.StatusUnauthorized {
		t.Errorf("%+v, %v", resp, err)
	}
	if got := strings.Join(other.received, " "); got != ":" {
		t.Errorf("the other server received %s", got)
	}
	_, err := send(riddle.URL, riddle.Listener.Addr().String())
	if failure := wantError(t, err, egress.InvalidResponse); !strings.Contains(failure.Message, "the riddle is not supported") {
		t.Error(failure)
	}
}
