package cluster_test

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// paths has the steps of each kind of run in order. Those with a ! make a call.
var paths = map[string][]string{
	"calls":    {"one!", "two!", "three!"},
	"pure":     {"one", "two", "three"},
	"waits":    {"one!", "wait", "three!"},
	"late":     {"one!", "wait", "three!"},
	"parallel": {"one!", "all", "all[0].each!", "all[1].each!", "all[2].each!", "three!"},
	"family":   {"one!", "child", "three!"},
	"asks":     {"one!", "ask", "three!"},
	"slow":     {"one!", "two!", "three!"},
}

// verify waits until everything has ended and compares it with what was acknowledged.
// If overlaps is true, two nodes may execute a step at the same time because one of
// them was paused.
func (l *load) verify(overlaps bool) {
	l.t.Helper()
	l.awaitIdle()
	for _, e := range l.runs {
		l.verifyRun(e)
	}
	l.c.checkTables()
	l.verifyCount()
	l.verifyCalls(overlaps)
	l.verifyDeliveries()
	for _, e := range l.runs { // a run that has ended does not change
		if now := l.read(e); string(now) != string(e.final) {
			l.t.Errorf("INVARIANT: run %s changed after its end\nwas %s\nis  %s", e.id, e.final, now)
		}
	}
	l.summarize()
}

// awaitIdle waits until all runs and deliveries have ended.
func (l *load) awaitIdle() {
	l.t.Helper()
	started := time.Now()
	left := []struct{ what, query string }{
		{"runs have not ended", `SELECT count(*) FROM run_queue`},
		{"deliveries are pending", `SELECT count(*) FROM deliveries WHERE status = 'pending'`},
	}
	if lane.Long() {
		// Outdated jobs and jobs of dead nodes are removed periodically. A job whose
		// completion was lost with the database is rescued after a minute; its run does
		// not wait for that.
		left = append(left, struct{ what, query string }{"jobs are not done", `SELECT count(*) FROM stepmill_river.river_job j
			WHERE state NOT IN ('completed', 'scheduled') AND NOT (state = 'running'
			AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = j.attempted_by[array_length(j.attempted_by, 1)]))`})
	}
	for _, left := range left {
		if n := harness.AwaitZero(func() int { return tables.Number(l.t, l.c.db, left.query) }); n > 0 {
			l.t.Errorf("INVARIANT: %d %s, unchanged for %v", n, left.what, harness.Timeout)
			l.logLeftovers()
		}
	}
	l.t.Logf("everything had ended %v after the load", time.Since(started).Round(time.Millisecond))
}

// logLeftovers logs what has not ended.
func (l *load) logLeftovers() {
	for _, query := range []string{
		`SELECT to_jsonb(q)::text FROM run_queue q`, `SELECT to_jsonb(n)::text FROM nodes n`, `SELECT to_jsonb(o)::text FROM webhook_owners o`,
		`SELECT to_jsonb(d)::text FROM deliveries d WHERE status = 'pending'`,
		`SELECT to_jsonb(j)::text FROM stepmill_river.river_job j WHERE state <> 'completed'`,
		`SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint::text`,
	} {
		l.t.Log(strings.Join(tables.Texts(l.t, l.c.db, query), "\n"))
	}
}

func (l *load) read(e *acknowledgedRun) []byte {
	l.t.Helper()
	for _, m := range l.c.nodes {
		if c := m.client(); c != nil {
			return l.sendTo(c, e.tenant, 200, "GET", "/v1/runs/"+e.id, nil).Body
		}
	}
	l.t.Fatal("clients avoid all nodes")
	return nil
}

// verifyRun compares a run with what its kind does.
func (l *load) verifyRun(e *acknowledgedRun) {
	l.t.Helper()
	e.final = l.read(e)
	var now runBody
	if err := json.Unmarshal(e.final, &now); err != nil {
		l.t.Fatal(err)
	}
	if now.ID != e.id || now.Status != "succeeded" || len(now.Steps) != len(paths[e.kind]) {
		l.t.Errorf("run %s (%s) is %s with %d steps, want succeeded: %s", e.id, e.kind, now.Status, len(now.Steps), e.final)
		return
	}
	for _, step := range now.Steps {
		if step.Status != "succeeded" || step.Attempt != 1 && !l.retriedWrite(e, step) {
			l.t.Errorf("run %s (%s): step %s is %s, attempt %d", e.id, e.kind, step.StepID, step.Status, step.Attempt)
		}
	}
}

// retriedWrite reports whether a step needed more attempts because the database was
// unavailable. Starting a child run is a write of the step itself.
func (l *load) retriedWrite(e *acknowledgedRun, step stepBody) bool {
	l.t.Helper()
	return step.StepID == "child" && step.Attempt-1 == tables.Number(l.t, l.c.db,
		`SELECT count(*) FROM step_attempts WHERE run_id = $1 AND path = $2 AND attempt < $3 AND error_text LIKE '%(unavailable)'`, e.id, step.StepID, step.Attempt)
}

// verifyCount checks that the tables have exactly the acknowledged runs.
func (l *load) verifyCount() {
	l.t.Helper()
	roots, children := len(l.runs)+l.extraRuns, 0
	for _, e := range l.runs {
		if e.kind == "family" {
			children++
		}
	}
	if n := tables.Number(l.t, l.c.db, `SELECT count(*) FROM runs WHERE parent_run IS NULL`); n != roots {
		l.t.Errorf("INVARIANT: %d runs are in the tables, want the %d that were acknowledged", n, roots)
	}
	if n := tables.Number(l.t, l.c.db, `SELECT count(*) FROM runs WHERE parent_run IS NOT NULL`); n != children {
		l.t.Errorf("INVARIANT: %d child runs are in the tables, want %d", n, children)
	}
}

// verifyCalls checks that each step was called once, and again only if a fault explains
// it. The next step is called after the call whose result was recorded.
func (l *load) verifyCalls(overlaps bool) {
	l.t.Helper()
	repeated := 0
	for _, e := range l.runs {
		byKey := map[string][]sink.Call{}
		for _, call := range l.sink.CallsOf(e.id) {
			byKey[call.Key] = append(byKey[call.Key], call)
		}
		var last, block time.Time // the ends of the recorded calls
		for _, path := range paths[e.kind] {
			path, calls := strings.CutSuffix(path, "!")
			if !calls {
				continue
			}
			of := byKey[e.id+"/"+path]
			if len(of) == 0 {
				l.t.Errorf("INVARIANT: %s/%s was never called", e.id, path)
				continue
			}
			repeated += len(of) - 1
			l.verifyRepeats(of, overlaps)
			counts := of[l.recordedCall(e, path, len(of))-1]
			if inBlock := strings.Contains(path, "["); !inBlock && !block.IsZero() {
				last, block = block, time.Time{}
			} else if inBlock && block.Before(counts.Ended) {
				block = counts.Ended
			}
			if of[0].At.Before(last) {
				l.t.Errorf("INVARIANT: %s/%s was called before the step it needs had a result", e.id, path)
			}
			if block.IsZero() {
				last = counts.Ended
			}
		}
	}
	l.t.Logf("%d calls were repeated", repeated)
}

func (l *load) verifyRepeats(of []sink.Call, overlaps bool) {
	l.t.Helper()
	for i := 1; i < len(of); i++ {
		before, again := of[i-1], of[i]
		unplanned := l.c.unplannedLossBetween(before.At, again.At)
		if !unplanned && !l.c.faultBetween(before.At, again.At) {
			l.t.Errorf("INVARIANT: %s was called at %s and again at %s without a fault in between",
				again.Key, before.At.Format(time.TimeOnly+".000"), again.At.Format(time.TimeOnly+".000"))
		}
		if !overlaps && !unplanned && (before.Ended.IsZero() || before.Ended.After(again.At)) {
			l.t.Errorf("INVARIANT: %s was called again while a call was in flight: %+v, %+v", again.Key, before, again)
		}
	}
}

// recordedCall returns which call of a step has the recorded result. The sink numbers
// its responses.
func (l *load) recordedCall(e *acknowledgedRun, path string, calls int) int {
	l.t.Helper()
	var now runBody
	if err := json.Unmarshal(e.final, &now); err != nil {
		l.t.Fatal(err)
	}
	for _, step := range now.Steps {
		var output struct {
			Body struct {
				Key   string `json:"key"`
				Count int    `json:"count"`
			} `json:"body"`
		}
		if step.StepID != path || json.Unmarshal(step.Output, &output) != nil {
			continue
		}
		if n := output.Body.Count; n >= 1 && n <= calls && output.Body.Key == e.id+"/"+path {
			return n
		}
		l.t.Errorf("%s/%s has the output %s after %d calls", e.id, path, step.Output, calls)
	}
	return calls
}

// verifyDeliveries compares the received deliveries with the tables.
func (l *load) verifyDeliveries() {
	l.t.Helper()
	all, again := sink.CheckDeliveries(l.t, l.c.db, l.receivers...)
	l.t.Logf("%d deliveries, %d repeated", all, again)
}

// summarize logs the counts.
func (l *load) summarize() {
	l.t.Helper()
	n := l.counts
	l.t.Logf("%d runs; %d requests, %d unavailable, %d without a response, %d replays; slowest response %v",
		len(l.runs), n.requests, n.unavailable, n.lost, n.replays, l.slowest.Round(time.Millisecond))
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	for _, lost := range l.c.losses {
		if !l.c.causedByFault(lost) {
			l.t.Logf("node %s lost its lease without a fault", lost.node)
		}
	}
}
