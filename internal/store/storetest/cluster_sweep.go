package storetest

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

func testSweep(t *testing.T, tm *team) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	wf := tm.workflow(t, ws.ID)
	r := tm.start(t, wf, "")
	sweep := func() (int, []string) {
		t.Helper()
		found, more, parked, err := first.Sweep(ctx)
		if err != nil || more {
			t.Error(more, err)
		}
		return found, parked
	}
	n, _ := sweep()
	same(t, "one that has just been handed over", n, 0)
	tm.exec(t, `DELETE FROM handed`)
	n, _ = sweep()
	same(t, "one that is given time to come", n, 0)
	tm.exec(t, `UPDATE run_queue SET wake_at = $1 WHERE run_id = $2`, clock.Now().Add(-time.Minute), r.ID)
	n, _ = sweep()
	same(t, "one that was lost", n, 1)
	same(t, "on its way", len(tm.handed(t)), 1)
	n, _ = sweep()
	same(t, "one that is late and on its way", n, 0)
	tm.loaded(t, ws.ID, 1, 0)

	tm.start(t, wf, "node_1")
	tm.start(t, wf, "node_1")
	_, parked := sweep()
	same(t, "workspaces with parked runs", parked, []string{ws.ID})

	t.Run("counts that are wrong", func(t *testing.T) {
		answers(first.Recount(ctx, ws.ID))(t, "right", false)
		tm.exec(t, `UPDATE workspace_load SET running = 7, parked = 9 WHERE workspace_id = $1`, ws.ID)
		answers(first.Recount(ctx, ws.ID))(t, "wrong", true)
		tm.loaded(t, ws.ID, 2, 1)
	})
	t.Run("what unknown nodes hold", func(t *testing.T) {
		same(t, "strays", must(first.Strays(ctx))(t), nil)
		lost := tm.start(t, tm.workflow(t, tm.workspace(t).ID), "node_lost")
		tm.exec(t, `INSERT INTO couriers (webhook_id, node) VALUES ('wh_1', 'node_other')`)
		same(t, "strays", must(first.Strays(ctx))(t), []string{"node_lost", "node_other"})
		count, _, err := first.TakeFrom(ctx, "node_lost", true)
		if err != nil || count != 1 || tm.queue(t, lost.ID).Node != nil {
			t.Error(count, err)
		}
	})
}

// testSweepBehind lets more runs wait for room than are looked at in one go. How
// long they wait can be told, and one among them that is lost is found.
func testSweepBehind(t *testing.T, tm *team) {
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
				t.Fatal("it has no end: ", err)
			}
			found, more = found+n, again
		}
		return found, looks
	}
	for name, spread := range map[string]string{"due together": `0`, "due one after the other": `row_number() OVER (ORDER BY run_id)`} {
		tm.exec(t, `UPDATE run_queue q SET wake_at = $1::bigint + n.after FROM (SELECT run_id, `+spread+` AS after FROM run_queue) n WHERE n.run_id = q.run_id`,
			clock.Now().Add(-time.Minute))
		since := must(tm.Backlog(ctx, clock.Now()))(t).Ready
		found, looks := sweep()
		same(t, name+": lost", found, 0)
		same(t, name+": looks", looks, 3)
		same(t, name+": since when the first waits", must(tm.Backlog(ctx, clock.Now()))(t).Ready, since)
		const lost = 450 // more than are brought on their way in one go
		tm.exec(t, `DELETE FROM handed WHERE run_id IN (SELECT run_id FROM run_queue ORDER BY wake_at DESC, run_id DESC LIMIT $1)`, lost)
		found, _ = sweep()
		same(t, name+": lost behind the others", found, lost)
		same(t, name+": on their way", len(tm.handed(t)), runs)
	}
}

// testSweepAdrift looks for what came with an import: due or not, each is put on
// its way once.
func testSweepAdrift(t *testing.T, tm *team) {
	ctx, ws := t.Context(), tm.workspace(t)
	tm.limit.Store(1000)
	wf := tm.workflow(t, ws.ID)
	const runs = 250
	for range runs {
		tm.start(t, wf, "")
	}
	tm.exec(t, `DELETE FROM handed`)
	tm.exec(t, `UPDATE run_queue SET adrift = true, wake_at = CASE WHEN substr(run_id, length(run_id)) < 'c' THEN $1::bigint ELSE $2::bigint END`, clock.Now().Add(-time.Minute), later())
	total := 0
	for more := true; more; {
		n, again, _, err := tm.nodes[0].Sweep(ctx)
		if err != nil || total > runs {
			t.Fatal(total, err)
		}
		total, more = total+n, again
	}
	same(t, "found", total, runs)
	same(t, "on their way", len(tm.handed(t)), runs)
	same(t, "still adrift", tm.count(t, `SELECT count(*) FROM run_queue WHERE adrift`), 0)
}
