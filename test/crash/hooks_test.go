package crash_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/tables"
)

// newHook makes an active workflow with a webhook trigger that deduplicates calls by key,
// and returns its id and the path of its URL.
func newHook(t *testing.T, s *harness.Server, steps ...map[string]any) (id, path string) {
	t.Helper()
	id = flow.Define(t, s.Client, steps...)
	s.Expect(t, 200, "PATCH", "/v1/workflows/"+id, map[string]any{
		"state":    "active",
		"triggers": []map[string]any{{"id": "hook", "type": "webhook", "rate": 1_000_000, "dedupe": "${{ trigger.payload.key }}"}},
	})
	return id, flow.HookPath(t, s.Client, id)
}

// The process dies around the commit of a webhook call, before it responds. The sender
// retries with the same key and gets the run that was started.
func TestWebhookCallRetriedAfterCrash(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before_accept_commit", "after_accept_commit"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := harness.Start(t, t.TempDir())
			_, path := newHook(t, s, flow.Set("set", 1))
			s.Stop(t)
			for n := range lane.Pick(1, 4) {
				dying := startDoomed(t, s.Dir, point+":kill")
				call := map[string]any{"key": fmt.Sprintf("delivery-%d", n)}
				if response, err := dying.Do(t.Context(), "POST", path, call); err == nil {
					t.Fatalf("response to the call is %d %s, want none", response.Status, response.Body)
				}
				awaitDeath(t, dying)
				written := tables.Texts(t, openCopy(t, s.Dir), "SELECT id FROM runs WHERE payload = $1", fmt.Sprintf(`{"key":"%v"}`, call["key"]))
				if durable := point == "after_accept_commit"; durable != (len(written) == 1) {
					t.Fatalf("%d runs were written before the death", len(written))
				}
				now := restart(t, s)
				var first, second struct {
					RunID     string `json:"run_id"`
					Duplicate bool   `json:"duplicate"`
				}
				now.Expect(t, 202, "POST", path, call).Decode(t, &first)
				now.Expect(t, 202, "POST", path, call).Decode(t, &second)
				if len(written) == 1 && (first.RunID != written[0] || !first.Duplicate) || second.RunID != first.RunID || !second.Duplicate {
					t.Errorf("INVARIANT: the retries returned %+v and %+v, want the committed run %v", first, second, written)
				}
				if end := awaitEnd(t, now.Client, first.RunID); end.Status != succeeded {
					t.Errorf("run %s is %s", end.ID, end.Status)
				}
				now.Stop(t)
				if runs := tables.Number(t, openCopy(t, s.Dir), "SELECT count(*) FROM runs"); runs != n+1 {
					t.Errorf("INVARIANT: %d runs, want %d", runs, n+1)
				}
			}
			checkTables(t, openCopy(t, s.Dir), "")
		})
	}
}

// The process dies after it sent a notification and before it recorded that. The
// notification is sent again, and the link in the first one still resumes the step.
func TestCallbackLinkSurvivesCrash(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	sent := make(chan string, 10)
	target := newBodyReceiver(t, sent)
	s := harness.Start(t, t.TempDir(), egress)
	id := flow.Define(t, s.Client, map[string]any{"id": "ask", "uses": "flow.approval", "with": map[string]any{
		"notify": map[string]any{"url": target, "body": "${{ links.ask.callback }}"},
	}})
	s.Stop(t)
	dying := startDoomed(t, s.Dir, "after_effect:kill")
	dying.Key = s.Key
	_, _ = dying.Do(t.Context(), "POST", "/v1/workflows/"+id+"/runs", nil) // it may die before it responds
	first := <-sent
	awaitDeath(t, dying)
	now := restart(t, s, egress)
	second := <-sent
	path := flow.PathFrom(t, first, "/callback/")
	if flow.PathFrom(t, second, "/callback/") != path {
		t.Errorf("the links differ: %s and %s", first, second)
	}
	now.Expect(t, 200, "POST", path, map[string]any{"job": 17})
	run := tables.Texts(t, openCopy(t, s.Dir), "SELECT id FROM runs")
	if end := awaitEnd(t, now.Client, run[0]); end.Status != succeeded {
		t.Errorf("the run is %s: %+v", end.Status, end.Error)
	}
}

// newBodyReceiver starts a server that sends the bodies of requests to a channel.
func newBodyReceiver(t *testing.T, into chan<- string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		into <- string(body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}
