package crash_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/tables"
)

// verifySome compares a random sample of the ledger with the server.
func (l *load) verifySome(t *testing.T, s *harness.Server, r *rand.Rand, size int) {
	t.Helper()
	for range size {
		switch {
		case len(l.ledger.keys) > 0 && r.IntN(8) == 0:
			l.verifyKey(t, s, l.ledger.keys[r.IntN(len(l.ledger.keys))])
		case len(l.ledger.webhooks) > 0 && r.IntN(6) == 0:
			l.verifyWebhook(t, s, l.ledger.webhooks[r.IntN(len(l.ledger.webhooks))])
		case len(l.ledger.runs) > 0 && r.IntN(3) > 0:
			l.verifyRun(t, s, l.ledger.runs[r.IntN(len(l.ledger.runs))])
		default:
			l.verifyWorkflow(t, s, l.ledger.workflows[r.IntN(len(l.ledger.workflows))])
		}
	}
}

// verifyAll compares the whole ledger with the server. All runs have ended.
func (l *load) verifyAll(t *testing.T, s *harness.Server) {
	t.Helper()
	for _, w := range l.ledger.workflows {
		l.verifyWorkflow(t, s, w)
	}
	for _, e := range l.ledger.runs {
		if now := l.verifyRun(t, s, e); now.Status == running {
			t.Errorf("INVARIANT: run %s has not ended", e.id)
		}
	}
	for _, w := range l.ledger.webhooks {
		l.verifyWebhook(t, s, w)
	}
	for _, k := range l.ledger.keys {
		l.verifyKey(t, s, k)
	}
	l.verifyOnce(t, s)
}

func (l *load) verifyRun(t *testing.T, s *harness.Server, e *execution) runBody {
	t.Helper()
	response := s.Expect(t, 200, "GET", "/v1/runs/"+e.id, nil)
	var now runBody
	response.Decode(t, &now)
	for _, v := range e.check(now, response.Body) {
		t.Error(v)
	}
	return now
}

func (l *load) verifyWorkflow(t *testing.T, s *harness.Server, w *workflow) {
	t.Helper()
	var now workflowBody
	s.Expect(t, 200, "GET", "/v1/workflows/"+w.id, nil).Decode(t, &now)
	if now.Version == w.version+1 && w.uncertain != nil {
		w.version++
		w.versions[w.version], w.uncertain = w.uncertain, nil
	}
	description := ""
	if now.Description != nil {
		description = *now.Description
	}
	if now.Name != w.name || description != w.description || now.Version != w.version {
		t.Errorf("INVARIANT: workflow %s is %q, %q, version %d; want %q, %q, version %d",
			w.id, now.Name, description, now.Version, w.name, w.description, w.version)
	}
	if diff := cmp.Diff(w.versions[w.version].steps(), now.Steps); diff != "" {
		t.Errorf("INVARIANT: steps of workflow %s (-want +got):\n%s", w.id, diff)
	}
}

func (l *load) verifyWebhook(t *testing.T, s *harness.Server, w webhook) {
	t.Helper()
	var now struct {
		URL        string   `json:"url"`
		Events     []string `json:"events"`
		WorkflowID *string  `json:"workflow_id"`
		Enabled    bool     `json:"enabled"`
		SecretHint string   `json:"secret_hint"`
	}
	s.Expect(t, 200, "GET", "/v1/webhooks/"+w.id, nil).Decode(t, &now)
	workflowID := ""
	if now.WorkflowID != nil {
		workflowID = *now.WorkflowID
	}
	if now.URL != w.url || workflowID != w.workflowID || !now.Enabled || !strings.HasSuffix(w.secret, now.SecretHint) ||
		!slices.Equal(now.Events, []string{"run.failed", "workflow.paused"}) {
		t.Errorf("INVARIANT: webhook %s is %+v, want %+v", w.id, now, w)
	}
}

// verifyKey also uses the key, whose value only the response had.
func (l *load) verifyKey(t *testing.T, s *harness.Server, k apiKey) {
	t.Helper()
	var now struct {
		Name   string   `json:"name"`
		Scopes []string `json:"scopes"`
	}
	s.Expect(t, 200, "GET", "/v1/api-keys/"+k.id, nil).Decode(t, &now)
	if now.Name != k.name || !slices.Equal(now.Scopes, []string{"read"}) {
		t.Errorf("INVARIANT: key %s is %+v, want %+v", k.id, now, k)
	}
	s.With(k.value).Expect(t, 200, "GET", "/v1/usage", nil)
}

// verifyOnce checks that a request with a key took effect exactly once, and a request
// without a response at most once.
func (l *load) verifyOnce(t *testing.T, s *harness.Server) {
	t.Helper()
	wanted := 0
	for _, e := range l.ledger.runs {
		if e.of == l.once {
			wanted++
		}
	}
	seen := map[int64]string{}
	for _, item := range list(t, s.Client, "/v1/workflows/"+l.once.id+"/runs").Data {
		n := getRun(t, s.Client, item.ID).Trigger.Payload.N
		if other, twice := seen[n]; twice {
			t.Errorf("INVARIANT: runs %s and %s were both started by the request with payload %d", other, item.ID, n)
		}
		seen[n] = item.ID
	}
	if len(seen) != wanted {
		t.Errorf("INVARIANT: %d runs for the requests with a key, want %d", len(seen), wanted)
	}
	for path, nameOf := range map[string]func(i int, p page) string{
		"/v1/workflows": func(i int, p page) string { return p.Data[i].Name },
		"/v1/webhooks":  func(i int, p page) string { return p.Data[i].URL },
		"/v1/api-keys":  func(i int, p page) string { return p.Data[i].Name },
	} {
		names := map[string]bool{}
		found := list(t, s.Client, path)
		for i := range found.Data {
			if name := nameOf(i, found); names[name] {
				t.Errorf("INVARIANT: %s: %s exists twice", path, name)
			} else {
				names[name] = true
			}
		}
	}
}

// settle has every client repeat its requests without a response, and waits until every
// run has ended.
func (l *load) settle(t *testing.T, s *harness.Server) {
	t.Helper()
	begun := time.Now()
	for _, c := range l.clients {
		c.api, c.onAck = harness.NewClient(s.URL, s.Key), func() {}
		if !c.catchUp() {
			t.Fatalf("client %d gets no response from a healthy server", c.number)
		}
	}
	for _, e := range l.ledger.runs {
		for waiting := time.Now(); l.verifyRun(t, s, e).Status == running; time.Sleep(20 * time.Millisecond) {
			if time.Since(waiting) > timeout {
				t.Fatalf("INVARIANT: run %s is still running %v after the last fault\n%s", e.id, time.Since(begun), describeQueue(t, s.Dir))
			}
		}
	}
	// Runs whose start got no response are only in the tables.
	awaitNone(t, s.Dir, "runs are queued", "SELECT count(*) FROM run_queue")
	t.Logf("every run had ended %v after the last fault", time.Since(begun).Round(time.Millisecond))
}

// summarize logs the counts.
func (l *load) summarize(t *testing.T) {
	t.Helper()
	workflows, runs, webhooks, keys := l.ledger.sizes()
	n := l.ledger.counts
	text, _ := json.Marshal(map[string]int{
		"workflows": workflows, "runs": runs, "webhooks": webhooks, "keys": keys, "requests": n.attempts, "lost": n.lost,
		"repeated": n.repeated, "replays": n.replays, "cancels": n.cancels, "rejected_cancels": n.rejectedCancels,
	})
	t.Logf("%.1f %% of the requests got a response; acknowledged: %s", 100*float64(n.answered)/float64(max(1, n.attempts)), text)
}

// describeQueue describes the queue on PostgreSQL.
func describeQueue(t *testing.T, dir string) string {
	t.Helper()
	if !harness.OnPostgres() {
		return ""
	}
	return tables.Queue(t, openTables(t, dir))
}
