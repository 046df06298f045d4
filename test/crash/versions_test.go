package crash_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// edited is a workflow that is changed, paused and at last deleted while its
// runs are under way. Each of its versions calls a path of its own.
type edited struct {
	id      string
	mu      sync.Mutex
	version int
	runs    map[string]int // accepted runs and the version they said they are of
	deleted time.Time
}

func (w *edited) steps(url string, version int) []map[string]any {
	var steps []map[string]any
	for i := range 3 + version%3 {
		steps = append(steps, calls(stepID(i), fmt.Sprintf("%s/v%d?ms=10", url, version)))
	}
	return steps
}

// change makes the next version, or pauses and activates.
func (w *edited) change(t *testing.T, c *harness.Client, url string, random *rand.Rand) {
	if random.IntN(3) == 0 {
		for _, state := range []string{"paused", "active"} {
			if answer, err := c.Do(t.Context(), "PATCH", "/v1/workflows/"+w.id, map[string]any{"state": state}); err != nil || answer.Status != 200 {
				t.Errorf("%s: %v %s", state, err, answer.Body)
			}
		}
		return
	}
	w.mu.Lock()
	w.version++
	version := w.version
	w.mu.Unlock()
	answer, err := c.Do(t.Context(), "PATCH", "/v1/workflows/"+w.id, map[string]any{"steps": w.steps(url, version)})
	var now workflowBody
	if err != nil || json.Unmarshal(answer.Body, &now) != nil || now.Version != version {
		t.Errorf("version %d: %v %s", version, err, answer.Body)
	}
}

// so tells how far it has come.
func (w *edited) so() (version, runs int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version, len(w.runs)
}

// start starts a run; a workflow that is paused or gone refuses.
func (w *edited) start(t *testing.T, c *harness.Client) {
	answer, err := c.Do(t.Context(), "POST", "/v1/workflows/"+w.id+"/runs", payload(1))
	if err != nil {
		t.Errorf("start: %v", err)
		return
	}
	var run runBody
	switch {
	case answer.Status == 201 && json.Unmarshal(answer.Body, &run) == nil:
		w.mu.Lock()
		w.runs[run.ID] = run.WorkflowVersion
		w.mu.Unlock()
	case answer.Status == 409 && strings.Contains(string(answer.Body), "workflow_paused"), answer.Status == 404:
	default:
		t.Errorf("a start was answered with %d %s", answer.Status, answer.Body)
	}
}

// delete removes the workflow with everything that is under way.
func (w *edited) delete(t *testing.T, c *harness.Client) {
	for _, order := range []struct {
		method string
		body   any
		want   int
	}{{"PATCH", map[string]any{"state": "paused"}, 200}, {"DELETE", nil, 204}} {
		if answer, err := c.Do(t.Context(), order.method, "/v1/workflows/"+w.id, order.body); err != nil || answer.Status != order.want {
			t.Errorf("%s: %v %d %s", order.method, err, answer.Status, answer.Body)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deleted = time.Now()
}

// Workflows are changed, paused and deleted at random while their runs are under
// way. A run keeps to its version; of what is deleted nothing goes on.
func TestChangesUnderLoad(t *testing.T) {
	t.Parallel()
	const workflows, versions, perWorkflow = 6, 20, 40
	seed := harness.Seed(t)
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	var all []*edited
	for range workflows {
		w := &edited{version: 2, runs: map[string]int{}}
		w.id = define(t, s.Client, nil, w.steps(outside.URL, 2)...)
		all = append(all, w)
	}
	var group sync.WaitGroup
	for i, w := range all {
		ended := make(chan struct{})
		group.Go(func() {
			defer close(ended)
			random := harness.Random(seed, i)
			for version, runs := w.so(); (version < versions || runs < perWorkflow) && !t.Failed(); version, runs = w.so() {
				time.Sleep(time.Duration(random.Int64N(int64(60 * time.Millisecond))))
				w.change(t, s.Client, outside.URL, random)
			}
			if i%2 == 0 {
				w.delete(t, s.Client)
			}
		})
		group.Go(func() {
			for !t.Failed() {
				w.start(t, s.Client)
				select {
				case <-ended:
					return
				case <-time.After(8 * time.Millisecond):
				}
			}
		})
	}
	group.Wait()
	total := 0
	for _, w := range all {
		total += len(w.runs)
		w.check(t, s.Client, outside)
	}
	t.Logf("%d runs of %d workflows with at least %d versions each", total, workflows, versions)
	s.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
}

// check holds the runs of a workflow against the calls that were made.
func (w *edited) check(t *testing.T, c *harness.Client, outside *sink.Sink) {
	t.Helper()
	for id, version := range w.runs {
		steps := len(w.steps("", version))
		if w.deleted.IsZero() {
			end := awaitEnd(t, c, id, settleTime)
			if end.Status != succeeded || end.WorkflowVersion != version || len(end.Steps) != steps {
				t.Errorf("run %s of version %d is %s of version %d after %d steps: %+v", id, version, end.Status, end.WorkflowVersion, len(end.Steps), end.Error)
			}
		} else {
			c.Expect(t, 404, "GET", "/v1/runs/"+id, nil)
		}
		for _, made := range outside.Of(id) {
			if made.Path != fmt.Sprintf("/v%d", version) {
				t.Errorf("run %s of version %d called %s", id, version, made.Path)
			}
			// A request may have been on its way when the workflow went.
			if late := made.At.Sub(w.deleted); !w.deleted.IsZero() && late > time.Second {
				t.Errorf("run %s made a call %v after its workflow was deleted", id, late)
			}
		}
		if n := len(outside.Of(id)); n > steps || w.deleted.IsZero() && n != steps {
			t.Errorf("run %s made %d calls, its version has %d steps", id, n, steps)
		}
	}
}
