package api_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// chunked are the headers of a body of unknown length. The server asks for the
// body when it starts to read it.
const chunked = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"

// begin sends the head of a request with a body and returns the status of the
// first response, which is 100 if the server wants the body. It then sends one
// byte of it.
func begin(conn net.Conn, target string, headers ...string) (int, error) {
	if _, err := io.WriteString(conn, target+" HTTP/1.1\r\nHost: x\r\n"+chunked+strings.Join(append(headers, ""), "\r\n")+"\r\n"); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	if response.StatusCode == http.StatusContinue {
		_, err = io.WriteString(conn, "1\r\n{\r\n")
	}
	return response.StatusCode, err
}

func (s *server) begin(t *testing.T, target string, headers ...string) int {
	t.Helper()
	status, err := begin(s.dial(t, time.Minute), target, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// beginMany starts n equal requests at the same time and finishes none.
func (s *server) beginMany(t *testing.T, n int, target string, headers ...string) {
	t.Helper()
	var wg sync.WaitGroup
	for range n {
		conn := s.dial(t, time.Minute)
		wg.Go(func() {
			if _, err := begin(conn, target, headers...); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// wantProgress checks that others can write, sign in and call hooks, with small
// and with large bodies.
func wantProgress(t *testing.T, other *testWorkspace, hook string) {
	t.Helper()
	large := `{"name": "n"` + strings.Repeat(" ", 900<<10) + `}`
	for _, body := range []string{`{"name": "n"}`, large} {
		other.call("POST", "/v1/workflows", body).wantStatus(201)
		hookCaller(other).call("POST", hook, body).wantStatus(202)
		// Without Content-Length, a server cannot know how large the body is.
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, other.server.url+"/v1/workflows", io.NopCloser(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+other.key)
		request.Header.Set("Content-Type", "application/json")
		other.send(request, body).wantStatus(201)
	}
	visitor := other.server.anonymous(t)
	visitor.call("POST", "/ui/v1/session", `{"email": "nobody@example.com", "password": "a wrong password"}`).wantStatus(401, "invalid_credentials")
}

// Requests of a workspace that do not finish their bodies do not keep others from
// sending theirs.
func TestUnfinishedBodies(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	attacker := s.newTestWorkspaceWith(t, `{"name": "n", "plan": "enterprise", "requests_per_minute": 10000}`)
	other := s.newTestWorkspaceWith(t, `{"name": "n", "plan": "pro"}`)
	hook := other.activeHook("wf", "")
	s.beginMany(t, 256, "POST /v1/workflows", "Authorization: Bearer "+attacker.key)
	wantProgress(t, other, hook)
}

// Calls of a hook that do not finish their bodies do not keep others from sending
// theirs, nor the hook from being called.
func TestUnfinishedHookCalls(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	attacked := s.newTestWorkspaceWith(t, `{"name": "n", "plan": "enterprise", "requests_per_minute": 10000}`)
	open := attacked.activeHook("open", `"rate": 1000`)
	attacked.call("PUT", "/v1/secrets/hook", `{"value": "a secret"}`).wantStatus(201)
	signed := attacked.activeHook("signed", `"verify": {"scheme": "github", "secret": "${{ secrets.hook }}"}`)
	other := s.newTestWorkspaceWith(t, `{"name": "n", "plan": "pro"}`)
	hook := other.activeHook("wf", "")
	s.beginMany(t, 128, "POST "+open)
	s.beginMany(t, 128, "POST "+signed, "X-Hub-Signature-256: sha256="+strings.Repeat("0", 64))
	wantProgress(t, other, hook)
	wantProgress(t, attacked, open)
}

// A call that its headers show to be wrong is rejected before its body is read.
func TestHookChecksHeadersBeforeTheBody(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.call("PUT", "/v1/secrets/hook", `{"value": "a secret"}`).wantStatus(201)
	const secret = `"secret": "${{ secrets.hook }}"`
	github := "X-Hub-Signature-256: sha256=" + sign("a secret", `{}`)
	for _, tc := range []struct {
		name, trigger string
		headers       []string
		want          int
	}{
		{"a wrong token", `"verify": {"scheme": "bearer", ` + secret + `}`, []string{"Authorization: Bearer x"}, 401},
		{"the right token", `"verify": {"scheme": "bearer", ` + secret + `}`, []string{"Authorization: Bearer a secret"}, 100},
		{"a wrong password", `"verify": {"scheme": "basic", "username": "u", ` + secret + `}`, []string{"Authorization: Basic dTp4"}, 401},
		{"no signature", `"verify": {"scheme": "github", ` + secret + `}`, nil, 401},
		{"a signature", `"verify": {"scheme": "github", ` + secret + `}`, []string{github}, 100},
		{"an old signature", `"verify": {"scheme": "slack", ` + secret + `}`, []string{"X-Slack-Signature: v0=00", "X-Slack-Request-Timestamp: 1500000000"}, 401},
		{"a method that is not allowed", `"methods": ["PUT"]`, nil, 405},
	} {
		path := w.activeHook("wf", tc.trigger)
		if got := w.server.begin(t, "POST "+path, tc.headers...); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
		}
	}
	for name, tc := range map[string]struct{ trigger, header string }{
		"open":   {`"rate": 1`, "X-A: b"},
		"signed": {`"rate": 1, "verify": {"scheme": "github", ` + secret + `}`, github},
	} {
		path := w.activeHook("wf", tc.trigger)
		header, value, _ := strings.Cut(tc.header, ": ")
		eventually(t, "the limit is reached: "+name, func() bool {
			return hookCaller(w).call("POST", path, `{}`, header, value).status == http.StatusTooManyRequests
		})
		// At the end of a minute the limit starts again.
		eventually(t, "429 before the body: "+name, func() bool {
			hookCaller(w).call("POST", path, `{}`, header, value)
			return w.server.begin(t, "POST "+path, tc.header) == http.StatusTooManyRequests
		})
	}
}
