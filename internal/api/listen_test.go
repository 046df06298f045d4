package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// draftHook creates a draft with one webhook trigger and returns the path of its URL.
func (w *testWorkspace) draftHook(name, trigger string) string {
	w.t.Helper()
	path := w.activeHook(name, trigger)
	w.patch(name, `{"state": "draft"}`)
	return path
}

func (w *testWorkspace) listen(name string) {
	w.t.Helper()
	until := w.call("POST", "/v1/workflows/$"+name+"/triggers/hook/listen", "").wantStatus(200).object()["listening_until"]
	if until == nil {
		w.t.Error("it does not say until when it listens")
	}
}

// hookRequests lists the recorded calls, newest first.
func (w *testWorkspace) hookRequests(name string) []map[string]any {
	w.t.Helper()
	return w.call("GET", "/v1/workflows/$"+name+"/triggers/hook/requests?limit=100", "").wantStatus(200).items()
}

func (w *testWorkspace) runCount(name string) int {
	w.t.Helper()
	return len(w.call("GET", "/v1/workflows/$"+name+"/runs?limit=100", "").wantStatus(200).items())
}

// While somebody listens, a draft accepts one call, which is recorded and starts no run.
func TestDraftHookAcceptsOneTestCall(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	path := w.draftHook("wf", `"dedupe": "${{ trigger.payload.n }}"`)
	c := hookCaller(w)
	c.call("POST", path, `{"n": 1}`).wantStatus(404, "not_found")
	w.listen("wf")
	a := c.call("POST", path+"?q=1", `{"n": 1}`, "X-Event", "order").wantStatus(202)
	if a.object()["test"] != true || a.object()["run_id"] != nil {
		t.Errorf("got %s", a.body)
	}
	c.call("POST", path, `{"n": 2}`).wantStatus(404, "not_found")
	got := w.hookRequests("wf")
	if len(got) != 3 {
		t.Fatalf("got %v", got)
	}
	wantContains(t, any(got[0]), `{"outcome": "workflow_not_active", "reason": "the workflow is not active", "payload": {"n": 2}}`)
	wantContains(t, any(got[1]), `{"outcome": "test", "reason": null, "run_id": null, "payload": {"n": 1}, "query": {"q": "1"}, "headers": {"x-event": "order"}}`)
	if n := w.runCount("wf"); n != 0 {
		t.Errorf("%d runs were started", n)
	}
	if until := w.call("GET", "/v1/workflows/$wf/triggers", "").items()[0]["listening_until"]; until != nil {
		t.Errorf("it still listens until %v", until)
	}
	// A test is not a call that a later one could repeat.
	w.patch("wf", `{"state": "active"}`)
	if a := c.call("POST", path, `{"n": 1}`).wantStatus(202); a.object()["duplicate"] != false {
		t.Errorf("got %s", a.body)
	}
	waits := w.draftHook("waits", `"respond": "result"`)
	w.listen("waits")
	if a := c.call("POST", waits, "").wantStatus(202); a.object()["test"] != true {
		t.Errorf("got %s", a.body)
	}
}

// Of many calls at once, one is the test.
func TestOneOfManyCallsIsTheTest(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	path := w.draftHook("wf", "")
	w.listen("wf")
	var tested atomic.Int32
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.url+path, strings.NewReader(`{}`))
			a, err := hookCaller(w).exchange(request, "")
			switch {
			case err != nil:
				t.Error(err)
			case a.status == http.StatusAccepted:
				tested.Add(1)
			case a.status != http.StatusNotFound:
				t.Errorf("got %d %s", a.status, a.body)
			}
		})
	}
	all.Wait()
	if tested.Load() != 1 {
		t.Errorf("%d calls were tests", tested.Load())
	}
}

// Listening ends by itself, when it is stopped, and when the workflow becomes active.
func TestListeningEnds(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newTestWorkspace(t)
	path := w.draftHook("wf", "")
	c := hookCaller(w)
	w.listen("wf")
	w.call("DELETE", "/v1/workflows/$wf/triggers/hook/listen", "").wantStatus(204)
	w.call("DELETE", "/v1/workflows/$wf/triggers/hook/listen", "").wantStatus(204)
	c.call("POST", path, "").wantStatus(404)
	w.listen("wf")
	s.query(t, `UPDATE triggers SET listening_until = listening_until - 301 * 1000000`)
	c.call("POST", path, "").wantStatus(404)
	w.listen("wf")
	w.patch("wf", `{"state": "active"}`)
	w.names["run"] = c.call("POST", path, "").wantStatus(202).str("run_id")
	w.call("POST", "/v1/workflows/$wf/triggers/hook/listen", "").wantStatus(409, "workflow_active")
	w.call("POST", "/v1/workflows/$wf/triggers/none/listen", "").wantStatus(404, "trigger_not_found")
	w.withScopes("read", "execute").call("POST", w.expand("/v1/workflows/$wf/triggers/hook/listen"), "").wantStatus(403, "insufficient_scope")
}

func TestListeningIsBoundedPerWorkspace(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w, other := s.newTestWorkspace(t), s.newTestWorkspace(t)
	w.workflow("wf")
	triggers := make([]string, 21)
	for i := range triggers {
		triggers[i] = fmt.Sprintf(`{"id": "hook_%d", "type": "webhook"}`, i)
	}
	w.patch("wf", `{"triggers": [`+strings.Join(triggers, ",")+`]}`)
	for i := range 20 {
		w.call("POST", fmt.Sprintf("/v1/workflows/$wf/triggers/hook_%d/listen", i), "").wantStatus(200)
	}
	w.call("POST", "/v1/workflows/$wf/triggers/hook_20/listen", "").wantStatus(429, "too_many_listeners")
	w.call("POST", "/v1/workflows/$wf/triggers/hook_3/listen", "").wantStatus(200) // one of them again
	other.draftHook("other", "")
	other.listen("other")
	w.call("DELETE", "/v1/workflows/$wf/triggers/hook_3/listen", "").wantStatus(204)
	w.call("POST", "/v1/workflows/$wf/triggers/hook_20/listen", "").wantStatus(200)
}

// A call that a listening trigger rejects gets the answer that an active one would give, is
// listed with the reason, and does not end the listening.
func TestRejectedTestCalls(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newTestWorkspace(t)
	w.call("PUT", "/v1/secrets/key", `{"value": "topsecret"}`).wantStatus(201)
	path := w.draftHook("wf", `"verify": {"scheme": "bearer", "header": "X-Token", "secret": "${{ secrets.key }}"}`)
	c := hookCaller(w)
	w.listen("wf")
	c.call("POST", path, `{"guess": 1}`, "X-Token", "guess", "X-Mine", "chosen").wantStatus(401, "unauthorized")
	c.call("PUT", path, `{}`, "X-Token", "topsecret").wantStatus(405, "method_not_allowed")
	c.call("POST", path, `{"a":`, "X-Token", "topsecret", "X-Mine", "kept", "Content-Type", "application/json").wantStatus(400, "invalid_json")
	c.call("POST", path, `{}`, "X-Token", "topsecret", "Content-Encoding", "gzip").wantStatus(415, "unsupported_media_type")
	c.call("POST", path, `{"n": 1}`, "X-Token", "topsecret").wantStatus(202)
	got := w.hookRequests("wf")
	for i, want := range []string{
		`{"outcome": "test", "payload": {"n": 1}}`,
		`{"outcome": "unsupported_media_type", "reason": "the body must not be compressed"}`,
		`{"outcome": "invalid_json", "reason": "the body is not valid JSON", "payload": null, "headers": {"x-mine": "kept"}}`,
		`{"outcome": "method_not_allowed", "reason": "method PUT is not allowed here; the webhook accepts POST", "headers": {}}`,
		`{"outcome": "signature_refused", "reason": "~.+", "headers": {}, "query": {}, "payload": null}`,
	} {
		wantContains(t, any(got[i]), want)
	}
	if text := fmt.Sprint(got); len(got) != 5 || strings.Contains(text, "chosen") || strings.Contains(text, "guess") || strings.Contains(text, "topsecret") {
		t.Errorf("got %v", got)
	}
}

// Calls that an active trigger rejects are listed too. Those that were not verified do not
// replace others.
func TestRejectedCallsAreListed(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.call("PUT", "/v1/secrets/key", `{"value": "topsecret"}`).wantStatus(201)
	path := w.activeHook("wf", `"verify": {"scheme": "github", "secret": "${{ secrets.key }}"}`)
	c := hookCaller(w)
	signed := func(body string) []string {
		return []string{"X-Hub-Signature-256", "sha256=" + sign("topsecret", body)}
	}
	c.call("POST", path, `{"a":`, append(signed(`{"a":`), "Content-Type", "application/json")...).wantStatus(400, "invalid_json")
	c.call("POST", path, `{}`, signed(`{}`)...).wantStatus(202)
	for range 30 {
		c.call("POST", path, `{}`, signed(`{"other": 1}`)...).wantStatus(401)
	}
	got := w.hookRequests("wf")
	if len(got) != 22 || got[0]["outcome"] != "signature_refused" {
		t.Fatalf("%d are listed: %v", len(got), got)
	}
	wantContains(t, any(got[20]), `{"outcome": "started", "reason": null}`)
	wantContains(t, any(got[21]), `{"outcome": "invalid_json", "reason": "the body is not valid JSON"}`)
}
