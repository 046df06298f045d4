package crash_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
)

// changingWorkflow is a workflow that is changed, paused and finally deleted
// while its runs execute. Each of its versions calls a different path.
type changingWorkflow struct {
	id      string
	mu      sync.Mutex
	version int
	runs    map[string]int // accepted runs with their versions
	deleted time.Time
}

func (w *changingWorkflow) steps(url string, version int) []map[string]any {
	var steps []map[string]any
	for i := range 3 + version%3 {
		steps = append(steps, flow.HTTP(stepID(i), fmt.Sprintf("%s/v%d?ms=10", url, version)))
	}
	return steps
}

// change makes the next version, or pauses and activates the workflow.
func (w *changingWorkflow) change(t *testing.T, c *harness.Client, url string, random *rand.Rand) {
	if random.IntN(3) == 0 {
		for _, state := range []string{"paused", "active"} {
			if response, err := c.DoUntilAvailable(t.Context(), "PATCH", "/v1/workflows/"+w.id, map[string]any{"state": state}); err != nil || response.Status != 200 {
				t.Errorf("%s: %v %s", state, err, response.Body)
			}
		}
		return
	}
	w.mu.Lock()
	w.version++
	version := w.version
	w.mu.Unlock()
	response, err := c.DoUntilAvailable(t.Context(), "PATCH", "/v1/workflows/"+w.id, map[string]any{"steps": w.steps(url, version)})
	var now workflowBody
	if err != nil || json.Unmarshal(response.Body, &now) != nil || now.Version != version {
		t.Errorf("version %d: %v %s", version, err, response.Body)
	}
}

// progress returns the current version and the number of runs.
func (w *changingWorkflow) progress() (version, runs int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version, len(w.runs)
}

// start starts a run. A paused or deleted workflow rejects it.
func (w *changingWorkflow) start(t *testing.T, c *harness.Client) {
	response, err := c.DoUntilAvailable(t.Context(), "POST", "/v1/workflows/"+w.id+"/runs", payload(1))
	if err != nil {
		t.Errorf("start a run: %v", err)
		return
	}
	var run runBody
	switch {
	case response.Status == 201 && json.Unmarshal(response.Body, &run) == nil:
		w.mu.Lock()
		w.runs[run.ID] = run.WorkflowVersion
		w.mu.Unlock()
	case response.Status == 409 && strings.Contains(string(response.Body), "workflow_paused"), response.Status == 404:
	default:
		t.Errorf("start returned %d %s", response.Status, response.Body)
	}
}

// delete pauses and deletes the workflow.
func (w *changingWorkflow) delete(t *testing.T, c *harness.Client) {
	for _, request := range []struct {
		method string
		body   any
		want   int
	}{{"PATCH", map[string]any{"state": "paused"}, 200}, {"DELETE", nil, 204}} {
		if response, err := c.DoUntilAvailable(t.Context(), request.method, "/v1/workflows/"+w.id, request.body); err != nil || response.Status != request.want {
			t.Errorf("%s: %v %d %s", request.method, err, response.Status, response.Body)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deleted = time.Now()
}

// Workflows are changed, paused and deleted at random while their runs execute. A
// run keeps the version it started with, and runs of deleted workflows stop.
func TestWorkflowChangesUnderLoad(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	workflows, versions, perWorkflow := lane.Pick(4, 6), lane.Pick(8, 20), lane.Pick(15, 40)
	seed := harness.Seed(t)
	target := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	var all []*changingWorkflow
	for range workflows {
		w := &changingWorkflow{version: 2, runs: map[string]int{}}
		w.id = flow.Define(t, s.Client, w.steps(target.URL, 2)...)
		all = append(all, w)
	}
	var group sync.WaitGroup
	for i, w := range all {
		ended := make(chan struct{})
		group.Go(func() {
			defer close(ended)
			random := harness.Random(seed, i)
			for version, runs := w.progress(); (version < versions || runs < perWorkflow) && !t.Failed(); version, runs = w.progress() {
				time.Sleep(time.Duration(random.Int64N(int64(60 * time.Millisecond))))
				w.change(t, s.Client, target.URL, random)
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
		w.checkRuns(t, s.Client)
	}
	t.Logf("%d runs of %d workflows with at least %d versions each", total, workflows, versions)
	s.Stop(t)
	target.AwaitClosed(t)
	for _, w := range all {
		w.checkCalls(t, target)
	}
	checkTables(t, openCopy(t, s.Dir), "")
}

// checkRuns waits until the runs of a workflow have ended and checks their versions. A
// deleted workflow must have no runs.
func (w *changingWorkflow) checkRuns(t *testing.T, c *harness.Client) {
	t.Helper()
	for id, version := range w.runs {
		if !w.deleted.IsZero() {
			c.Expect(t, 404, "GET", "/v1/runs/"+id, nil)
			continue
		}
		end := awaitEnd(t, c, id)
		if end.Status != succeeded || end.WorkflowVersion != version || len(end.Steps) != len(w.steps("", version)) {
			t.Errorf("run %s of version %d is %s with version %d and %d steps: %+v", id, version, end.Status, end.WorkflowVersion, len(end.Steps), end.Error)
		}
	}
}

// checkCalls compares the calls of the runs with their versions.
func (w *changingWorkflow) checkCalls(t *testing.T, target *sink.Sink) {
	t.Helper()
	for id, version := range w.runs {
		steps := len(w.steps("", version))
		late := 0
		for _, made := range target.CallsOf(id) {
			if made.Path != fmt.Sprintf("/v%d", version) {
				t.Errorf("run %s of version %d called %s", id, version, made.Path)
			}
			if !w.deleted.IsZero() && made.At.After(w.deleted) {
				late++
			}
		}
		// One call may have been in flight when the workflow was deleted, but no more.
		if late > 1 {
			t.Errorf("INVARIANT: run %s made %d calls after its workflow was deleted", id, late)
		}
		if n := len(target.CallsOf(id)); n > steps || w.deleted.IsZero() && n != steps {
			t.Errorf("INVARIANT: run %s made %d calls, want %d", id, n, steps)
		}
	}
}
