package crash_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/tables"
)

const starters = 4

// A workflow is deleted while its runs wait and clients start more. From then on the API
// shows nothing of it, and its rows are soon purged.
func TestDeleteWorkflowWithActiveRuns(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	s := harness.Start(t, t.TempDir(), egress)
	does := chain{{"add", 1}, {"wait", 1500}, {"times", 2}}
	doomed := createWorkflow(t, s.Client, "doomed", chain{{"add", 1}, {"wait", 60_000}, {"times", 2}})
	spared := createWorkflow(t, s.Client, "spared", does)
	survivor := startRun(t, s.Client, spared, 4).ID
	var hook struct{ ID string }
	s.Expect(t, 201, "POST", "/v1/webhooks", map[string]any{
		"url": "http://127.0.0.1:1/", "events": []string{"run.cancelled"}, "workflow_id": doomed,
	}).Decode(t, &hook)

	var runs []string
	for n := range lane.Pick[int64](20, 50) {
		runs = append(runs, startRun(t, s.Client, doomed, n).ID)
	}
	for _, id := range runs {
		awaitWaiting(t, s.Client, id)
	}
	s.Expect(t, 200, "PATCH", "/v1/workflows/"+doomed, map[string]any{"state": "active"})
	s.Expect(t, 409, "DELETE", "/v1/workflows/"+doomed, nil)
	// Most of the runs that start now wake up after the delete.
	s.Expect(t, 200, "PATCH", "/v1/workflows/"+doomed, map[string]any{"state": "draft", "steps": does.steps()})
	more, stop := keepStarting(t, s.Client, doomed)
	harness.Eventually(t, "every starter has started a run", func() bool { return len(more()) >= starters })
	s.Expect(t, 204, "DELETE", "/v1/workflows/"+doomed, nil)
	const ends = `SELECT id FROM events WHERE workflow_id = $1 AND type IN ('run.cancelled', 'run.succeeded', 'run.failed')`
	before := tables.Texts(t, openTables(t, s.Dir), ends, doomed)
	checkDeleted(t, s.Client, doomed, hook.ID, runs)
	stop()
	runs = append(runs, more()...)
	t.Logf("%d runs were active", len(runs))
	checkDeleted(t, s.Client, doomed, hook.ID, runs)

	s.Kill(t)
	s = restart(t, s, egress)
	checkDeleted(t, s.Client, doomed, hook.ID, runs)
	awaitPurge(t, s, doomed, runs)
	for _, v := range does.violations(awaitEnd(t, s.Client, survivor)) {
		t.Error(v)
	}
	s.Stop(t)
	db := openCopy(t, s.Dir)
	checkTables(t, db, "")
	for _, id := range tables.Texts(t, db, ends, doomed) {
		if !slices.Contains(before, id) {
			t.Errorf("event %s reports the end of a run after its workflow was deleted", id)
		}
	}
}

func awaitWaiting(t *testing.T, c *harness.Client, id string) runBody {
	t.Helper()
	for deadline := time.Now().Add(timeout); ; {
		r := getRun(t, c, id)
		if r.WaitingFor != nil && r.WaitingFor.Until != nil {
			return r
		}
		if r.Status != running || time.Now().After(deadline) {
			t.Fatalf("run %s is not waiting: %+v", id, r)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// keepStarting starts runs until the workflow is deleted. The stop function waits for
// that.
func keepStarting(t *testing.T, c *harness.Client, workflowID string) (started func() []string, stop func()) {
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		all   []string
	)
	for range starters {
		group.Go(func() {
			for deadline := time.Now().Add(timeout); ; {
				response, err := c.DoUntilAvailable(t.Context(), "POST", "/v1/workflows/"+workflowID+"/runs", payload(1))
				if err == nil && response.Status == 404 {
					return
				}
				if err != nil || response.Status != 201 || time.Now().After(deadline) {
					t.Errorf("start during a delete: %v %d %s", err, response.Status, response.Body)
					return
				}
				var r runBody
				if err := json.Unmarshal(response.Body, &r); err != nil {
					t.Error(err)
				}
				mu.Lock()
				all = append(all, r.ID)
				mu.Unlock()
			}
		})
	}
	started = func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
	return started, group.Wait
}

// checkDeleted checks that the API shows nothing of a deleted workflow.
func checkDeleted(t *testing.T, c *harness.Client, workflowID, webhookID string, runs []string) {
	t.Helper()
	at := "/v1/workflows/" + workflowID
	c.Expect(t, 404, "GET", at, nil)
	c.Expect(t, 404, "PATCH", at, map[string]any{"name": "again"})
	c.Expect(t, 404, "DELETE", at, nil)
	c.Expect(t, 404, "GET", at+"/versions", nil)
	c.Expect(t, 404, "GET", at+"/runs", nil)
	c.Expect(t, 404, "POST", at+"/runs", nil)
	c.Expect(t, 404, "GET", "/v1/webhooks/"+webhookID, nil)
	for _, w := range list(t, c, "/v1/workflows").Data {
		if w.ID == workflowID {
			t.Errorf("the deleted workflow is still listed")
		}
	}
	for _, id := range runs {
		c.Expect(t, 404, "GET", "/v1/runs/"+id, nil)
		c.Expect(t, 404, "POST", "/v1/runs/"+id+"/cancel", nil)
	}
}

// awaitPurge waits until the rows of the workflow and its runs are deleted.
func awaitPurge(t *testing.T, s *harness.Server, workflowID string, runs []string) {
	t.Helper()
	begun := time.Now()
	left := harness.AwaitZero(func() int {
		return number(t, s.Dir, `SELECT (SELECT count(*) FROM workflows WHERE id = $1) + (SELECT count(*) FROM workflow_versions WHERE workflow_id = $1)
			+ (SELECT count(*) FROM runs WHERE workflow_id = $1) + (SELECT count(*) FROM run_queue WHERE workflow_id = $1)
			+ (SELECT count(*) FROM steps WHERE run_id IN ('`+strings.Join(runs, "', '")+`'))`, workflowID)
	})
	if left > 0 {
		t.Fatalf("%d rows are left, unchanged for %v", left, timeout)
	}
	t.Logf("purged after %v", time.Since(begun).Round(time.Millisecond))
}
