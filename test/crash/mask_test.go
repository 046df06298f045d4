package crash_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// token is issued by a server while a run executes.
const token = "t0k3n-c4n4ry-v4lue"

// tokenServer issues a token at /token and echoes the header Authorization at other
// paths. It delays the first response at /slow until it is released.
type tokenServer struct {
	*httptest.Server
	arrived, released chan struct{}
	mu                sync.Mutex
	bodies            []string       // at /hook
	authorized        map[string]int // calls with the right token, by path
}

func newTokenServer(t *testing.T) *tokenServer {
	s := &tokenServer{arrived: make(chan struct{}, 10), released: make(chan struct{}), authorized: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *tokenServer) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	header := r.Header.Get("Authorization")
	s.mu.Lock()
	if header == "Bearer "+token {
		s.authorized[r.URL.Path]++
	}
	if r.URL.Path == "/hook" {
		s.bodies = append(s.bodies, string(body))
	}
	s.mu.Unlock()
	switch r.URL.Path {
	case "/token":
		w.Header().Set("Set-Cookie", "session="+token)
		fmt.Fprintf(w, `{"access_token": %q, "expires_in": 60}`, token)
		return
	case "/slow":
		s.arrived <- struct{}{}
		select {
		case <-s.released:
		case <-r.Context().Done():
			return
		}
	case "/refused":
		w.WriteHeader(http.StatusForbidden)
	}
	fmt.Fprintf(w, `{"seen": %q, "encoded": %q}`, header, base64.StdEncoding.EncodeToString([]byte(header)))
}

func (s *tokenServer) calls(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.authorized[path]
}

// A token that a step masks reaches the servers that later steps call, also after the
// server was killed. It is in no response of the API, event, log or file.
func TestMaskedValueIsStoredNowhere(t *testing.T) {
	t.Parallel()
	harness.EmbeddedOnly(t, "it searches the files of the data directory")
	target := newTokenServer(t)
	s := harness.Start(t, t.TempDir(), egress)
	first := s
	s.Expect(t, http.StatusCreated, "POST", "/v1/webhooks", map[string]any{"url": target.URL + "/hook", "events": []string{"run.failed", "run.succeeded"}})
	child := flow.Define(t, s.Client, flow.Step("keep", "data.set", `{"values": {"got": "${{ trigger.payload }}"}}`))
	call := func(id, path string) map[string]any {
		return flow.Step(id, "http.request", fmt.Sprintf(`{"url": %q, "method": "POST", "headers": {"Authorization": "Bearer ${{ steps.login.output.body.access_token }}"}, "body": "${{ steps.login.output.body }}"}`, target.URL+path))
	}
	login := flow.Step("login", "http.request", fmt.Sprintf(`{"url": %q}`, target.URL+"/token"))
	login["mask"] = []string{"body.access_token", "headers.set-cookie"}
	refused := call("refused", "/refused")
	refused["on_error"] = "continue"
	id := flow.Define(t, s.Client, login, call("before", "/before"), call("slow", "/slow"), refused,
		flow.Step("script", "code.js", `{"code": "console.log('token ' + input); return {parts: [input, encodeURIComponent(input)]}", "input": "${{ steps.login.output.body.access_token }}"}`),
		map[string]any{"id": "each", "foreach": "${{ [steps.login.output.body.access_token, steps.before.output.body.seen] }}", "steps": []any{
			flow.Step("note", "log.write", `{"message": "item ${{ item }}"}`)}},
		flow.Step("child", "flow.run", fmt.Sprintf(`{"workflow_id": %q, "payload": {"token": "${{ steps.login.output.body.access_token }}"}}`, child)),
		call("after", "/after"),
		flow.Step("end", "flow.stop", `{"status": "failed", "message": "ended with ${{ steps.login.output.body.access_token }}"}`))
	started := startRun(t, s.Client, id, 1)
	<-target.arrived
	s.Kill(t)
	close(target.released)
	s = restart(t, s, egress)
	if end := awaitEnd(t, s.Client, started.ID); end.Status != failed || !strings.Contains(end.Error.Message, "ended with ***") {
		t.Fatalf("the run is %s: %+v", end.Status, end.Error)
	}
	for _, path := range []string{"/before", "/slow", "/refused", "/after"} {
		if target.calls(path) == 0 {
			t.Errorf("%s did not get the token", path)
		}
	}
	harness.Eventually(t, "the event is delivered", func() bool {
		target.mu.Lock()
		defer target.mu.Unlock()
		return len(target.bodies) >= 2
	})
	shown := strings.Join(target.bodies, "\n")
	for _, path := range []string{
		"/v1/runs/" + started.ID, "/v1/runs/" + started.ID + "/steps", "/v1/runs/" + started.ID + "/logs", "/v1/runs", "/v1/events", "/v1/workflows/" + id, "/v1/audit",
	} {
		response, err := s.Do(t.Context(), "GET", path, nil)
		if err != nil {
			t.Fatal(err)
		}
		shown += string(response.Body)
	}
	for _, r := range list(t, s.Client, "/v1/runs").Data {
		shown += string(s.Expect(t, http.StatusOK, "GET", "/v1/runs/"+r.ID, nil).Body)
	}
	s.Stop(t)
	shown += first.Log() + s.Log()
	files, err := filepath.Glob(filepath.Join(s.Dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			shown += string(data)
		}
	}
	if !strings.Contains(shown, `"access_token":"***"`) {
		t.Error("the masked output is not shown")
	}
	encoded := base64.StdEncoding.EncodeToString([]byte("Bearer " + token))
	for _, trace := range []string{token, base64.StdEncoding.EncodeToString([]byte(token)), encoded[12:32]} {
		if at := strings.Index(shown, trace); at >= 0 {
			t.Errorf("%q is stored or shown: %q", trace, shown[max(0, at-200):min(len(shown), at+200)])
		}
	}
	checkTables(t, openCopy(t, s.Dir), "")
}
