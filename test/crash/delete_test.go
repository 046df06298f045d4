package crash_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

const (
	waitingRuns = 50
	starters    = 4
	purgeTime   = 30 * time.Second
)

// A workflow is deleted while its runs wait and while others start more of
// them. From that moment nothing of it is there, and its rows go soon.
func TestDeleteWithLiveRuns(t *testing.T) {
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
	for n := range int64(waitingRuns) {
		runs = append(runs, startRun(t, s.Client, doomed, n).ID)
	}
	for _, id := range runs {
		awaitWaiting(t, s.Client, id)
	}
	s.Expect(t, 200, "PATCH", "/v1/workflows/"+doomed, map[string]any{"state": "active"})
	s.Expect(t, 409, "DELETE", "/v1/workflows/"+doomed, nil)
	// The time of those that start now comes after the delete.
	s.Expect(t, 200, "PATCH", "/v1/workflows/"+doomed, map[string]any{"state": "draft", "steps": does.steps()})
	more, stop := keepStarting(t, s.Client, doomed)
	time.Sleep(50 * time.Millisecond)
	s.Expect(t, 204, "DELETE", "/v1/workflows/"+doomed, nil)
	checkGone(t, s.Client, doomed, hook.ID, runs)
	stop()
	runs = append(runs, *more...)
	t.Logf("%d runs were live", len(runs))
	checkGone(t, s.Client, doomed, hook.ID, runs)

	s.Kill(t)
	s = restart(t, s, egress)
	checkGone(t, s.Client, doomed, hook.ID, runs)
	awaitPurge(t, s, doomed, runs)
	for _, v := range does.violations(awaitEnd(t, s.Client, survivor, 20*time.Second)) {
		t.Error(v)
	}
	s.Stop(t)
	db := checkFile(t, s.Dir)
	checkTables(t, db, "")
	if n := number(t, db, "SELECT count(*) FROM events WHERE workflow_id = $1 AND type IN ('run.cancelled', 'run.succeeded', 'run.failed')", doomed); n != 0 {
		t.Errorf("%d runs of a deleted workflow came to an end", n)
	}
}

func awaitWaiting(t *testing.T, c *harness.Client, id string) runBody {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		r := getRun(t, c, id)
		if r.WaitingFor != nil && r.WaitingFor.Until != nil {
			return r
		}
		if r.Status != running || time.Now().After(deadline) {
			t.Fatalf("run %s does not wait: %+v", id, r)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// keepStarting starts runs until told to stop, by when the workflow must be
// gone for the starters too.
func keepStarting(t *testing.T, c *harness.Client, workflowID string) (started *[]string, stop func()) {
	var (
		mu    sync.Mutex
		group sync.WaitGroup
	)
	started = &[]string{}
	for range starters {
		group.Go(func() {
			for deadline := time.Now().Add(10 * time.Second); ; {
				answer, err := c.Do(t.Context(), "POST", "/v1/workflows/"+workflowID+"/runs", payload(1))
				if err == nil && answer.Status == 404 {
					return
				}
				if err != nil || answer.Status != 201 || time.Now().After(deadline) {
					t.Errorf("start beside a delete: %v %d %s", err, answer.Status, answer.Body)
					return
				}
				var r runBody
				if err := json.Unmarshal(answer.Body, &r); err != nil {
					t.Error(err)
				}
				mu.Lock()
				*started = append(*started, r.ID)
				mu.Unlock()
			}
		})
	}
	return started, group.Wait
}

// checkGone makes sure that nothing of a deleted workflow can be reached.
func checkGone(t *testing.T, c *harness.Client, workflowID, webhookID string, runs []string) {
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

// awaitPurge waits until no row of the workflow and its runs is left.
func awaitPurge(t *testing.T, s *harness.Server, workflowID string, runs []string) {
	t.Helper()
	db := openTables(t, s.Dir)
	begun := time.Now()
	for {
		left := number(t, db, `SELECT (SELECT count(*) FROM workflows WHERE id = $1) + (SELECT count(*) FROM workflow_versions WHERE workflow_id = $1)
			+ (SELECT count(*) FROM runs WHERE workflow_id = $1) + (SELECT count(*) FROM run_queue WHERE workflow_id = $1)
			+ (SELECT count(*) FROM steps WHERE run_id IN ('`+strings.Join(runs, "', '")+`'))`, workflowID)
		if left == 0 {
			t.Logf("purged after %v", time.Since(begun).Round(time.Millisecond))
			return
		}
		if time.Since(begun) > purgeTime {
			t.Fatalf("%d rows are left after %v", left, purgeTime)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
