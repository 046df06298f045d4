package storetest

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

func testSweep(t *testing.T, tm *cluster) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	wf := tm.workflow(t, ws.ID)
	r := tm.start(t, wf, "")
	sweep := func() (int, []string) {
		t.Helper()
		found, more, throttled, err := first.Sweep(ctx)
		if err != nil || more {
			t.Error(more, err)
		}
		return found, throttled
	}
	n, _ := sweep()
	equal(t, "a run with a new job", n, 0)
	tm.exec(t, `DELETE FROM handed`)
	n, _ = sweep()
	equal(t, "one that is given time to come", n, 0)
	tm.exec(t, `UPDATE run_queue SET wake_at = $1 WHERE run_id = $2`, clock.Now().Add(-time.Minute), r.ID)
	n, _ = sweep()
	equal(t, "a lost run", n, 1)
	equal(t, "job", len(tm.jobs(t)), 1)
	n, _ = sweep()
	equal(t, "an overdue run with a job", n, 0)
	tm.checkLoad(t, ws.ID, 1, 0)

	tm.start(t, wf, "node_1")
	tm.start(t, wf, "node_1")
	_, throttled := sweep()
	equal(t, "workspaces with throttled runs", throttled, []string{ws.ID})

	t.Run("wrong counts", func(t *testing.T) {
		returns(first.Recount(ctx, ws.ID))(t, "right", false)
		tm.exec(t, `UPDATE workspace_load SET running = 7, throttled = 9 WHERE workspace_id = $1`, ws.ID)
		returns(first.Recount(ctx, ws.ID))(t, "wrong", true)
		tm.checkLoad(t, ws.ID, 2, 1)
	})
	t.Run("runs of unknown nodes", func(t *testing.T) {
		equal(t, "unknown nodes", must(first.UnknownNodes(ctx))(t), nil)
		lost := tm.start(t, tm.workflow(t, tm.workspace(t).ID), "node_lost")
		tm.exec(t, `INSERT INTO webhook_owners (webhook_id, node) VALUES ('wh_1', 'node_other')`)
		equal(t, "unknown nodes", must(first.UnknownNodes(ctx))(t), []string{"node_lost", "node_other"})
		count, _, err := first.TakeOver(ctx, "node_lost", true)
		if err != nil || count != 1 || tm.queue(t, lost.ID).Node != nil {
			t.Error(count, err)
		}
	})
}

// testSweepManyOverdue lets more runs wait for capacity than one sweep checks.
// How long they have waited stays visible, and a lost run among them is found.
func testSweepManyOverdue(t *testing.T, tm *cluster) {
	ctx := t.Context()
	r := tm.start(t, tm.workflow(t, tm.workspace(t).ID), "")
	const runs = 1200
	tm.exec(t, `INSERT INTO run_queue (run_id, workspace_id, workflow_id, epoch, slot)
		SELECT run_id || '_' || n, workspace_id, workflow_id, 1, true FROM run_queue, generate_series(2, $1::bigint) n`, runs)
	tm.exec(t, `INSERT INTO handed (run_id, epoch, at, crashes) SELECT run_id, 1, 1, 0 FROM run_queue WHERE run_id <> $1`, r.ID)
	sweep := func() (found, looks int) {
		t.Helper()
		for more := true; more; looks++ {
			n, again, _, err := tm.nodes[0].Sweep(ctx)
			if err != nil || looks > 100 {
				t.Fatal("the sweep does not end: ", err)
			}
			found, more = found+n, again
		}
		return found, looks
	}
	for name, spread := range map[string]string{"due together": `0`, "due one after the other": `row_number() OVER (ORDER BY run_id)`} {
		tm.exec(t, `UPDATE run_queue q SET wake_at = $1::bigint + n.after FROM (SELECT run_id, `+spread+` AS after FROM run_queue) n WHERE n.run_id = q.run_id`,
			clock.Now().Add(-time.Minute))
		since := must(tm.Runs.Backlog(ctx, clock.Now()))(t).Ready
		found, looks := sweep()
		equal(t, name+": lost", found, 0)
		equal(t, name+": looks", looks, 3)
		equal(t, name+": since when the first waits", must(tm.Runs.Backlog(ctx, clock.Now()))(t).Ready, since)
		const lost = 450 // more than one sweep requeues
		tm.exec(t, `DELETE FROM handed WHERE run_id IN (SELECT run_id FROM run_queue ORDER BY wake_at DESC, run_id DESC LIMIT $1)`, lost)
		found, _ = sweep()
		equal(t, name+": lost behind the others", found, lost)
		equal(t, name+": jobs", len(tm.jobs(t)), runs)
	}
}

// testSweepImported checks that each imported run is requeued once, whether it is
// due or not.
func testSweepImported(t *testing.T, tm *cluster) {
	ctx, ws := t.Context(), tm.workspace(t)
	tm.limit.Store(1000)
	wf := tm.workflow(t, ws.ID)
	const runs = 250
	for range runs {
		tm.start(t, wf, "")
	}
	tm.exec(t, `DELETE FROM handed`)
	tm.exec(t, `UPDATE run_queue SET orphaned = true, wake_at = CASE WHEN substr(run_id, length(run_id)) < 'c' THEN $1::bigint ELSE $2::bigint END`, clock.Now().Add(-time.Minute), later())
	total := 0
	for more := true; more; {
		n, again, _, err := tm.nodes[0].Sweep(ctx)
		if err != nil || total > runs {
			t.Fatal(total, err)
		}
		total, more = total+n, again
	}
	equal(t, "found", total, runs)
	equal(t, "jobs", len(tm.jobs(t)), runs)
	equal(t, "still marked as imported", tm.count(t, `SELECT count(*) FROM run_queue WHERE orphaned`), 0)
}
