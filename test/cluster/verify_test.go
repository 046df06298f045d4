package cluster_test

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/test/sink"
)

// paths are the steps of a kind of run, in their order, and which of them call.
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

// verify waits until everything has come to its end and holds all of it against
// what was acknowledged. Overlaps says that a step may be executed by two nodes
// at a time: one of them was paused.
func (l *load) verify(overlaps bool) {
	l.t.Helper()
	l.settle()
	for _, e := range l.runs {
		l.verifyRun(e)
	}
	l.c.checkTables()
	l.verifyCount()
	l.verifyCalls(overlaps)
	l.verifyDeliveries()
	for _, e := range l.runs { // what has ended stays as it is
		if now := l.read(e); string(now) != string(e.final) {
			l.t.Errorf("run %s changed after its end\nwas %s\nis  %s", e.id, e.final, now)
		}
	}
	l.summarize()
}

// settle waits until nothing is under way any more.
func (l *load) settle() {
	l.t.Helper()
	began := time.Now()
	for _, left := range []struct {
		what   string
		atMost time.Duration
		query  string
	}{
		{"runs have not ended", settleTime, `SELECT count(*) FROM run_queue`},
		{"deliveries are pending", settleTime, `SELECT count(*) FROM deliveries WHERE status = 'pending'`},
		// Jobs for a time that a run does not wait for any more are removed once in a
		// while, and those that a node had taken when it died are found by then. One
		// whose end was lost with the database is looked for after a minute; its run
		// does not wait for that.
		{"jobs are not done", settleTime + 90*time.Second, `SELECT count(*) FROM stepmill_river.river_job j WHERE state NOT IN ('completed', 'scheduled')
			AND NOT (state = 'running' AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = j.attempted_by[array_length(j.attempted_by, 1)]))`},
	} {
		for n := 1; n > 0; time.Sleep(50 * time.Millisecond) {
			if n = number(l.t, l.c.tables, left.query); n > 0 && time.Since(began) > left.atMost {
				l.t.Errorf("%d %s %v after the last fault", n, left.what, left.atMost)
				l.explain()
				break
			}
		}
	}
	l.t.Logf("everything had ended %v after the last fault", time.Since(began).Round(time.Millisecond))
}

// explain shows what is left.
func (l *load) explain() {
	for _, query := range []string{
		`SELECT to_jsonb(q)::text FROM run_queue q`, `SELECT to_jsonb(n)::text FROM nodes n`, `SELECT to_jsonb(c)::text FROM couriers c`,
		`SELECT to_jsonb(d)::text FROM deliveries d WHERE status = 'pending'`,
		`SELECT to_jsonb(j)::text FROM stepmill_river.river_job j WHERE state <> 'completed'`,
		`SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint::text`,
	} {
		l.t.Log(strings.Join(texts(l.t, l.c.tables, query), "\n"))
	}
}

func (l *load) read(e *execution) []byte {
	l.t.Helper()
	for _, m := range l.c.nodes {
		if c := m.client(); c != nil {
			return c.With(e.tenant.key).Expect(l.t, 200, "GET", "/v1/runs/"+e.id, nil).Body
		}
	}
	l.t.Fatal("no node is left")
	return nil
}

// verifyRun holds a run against what its kind does.
func (l *load) verifyRun(e *execution) {
	l.t.Helper()
	e.final = l.read(e)
	var now runBody
	if err := json.Unmarshal(e.final, &now); err != nil {
		l.t.Fatal(err)
	}
	if now.ID != e.id || now.Status != "succeeded" || len(now.Steps) != len(paths[e.kind]) {
		l.t.Errorf("run %s (%s) is %s with %d steps: %s", e.id, e.kind, now.Status, len(now.Steps), e.final)
		return
	}
	for _, step := range now.Steps {
		// The start of a run below is a write, and may be tried again like others.
		again := l.slow && step.StepID == "child"
		if step.Status != "succeeded" || step.Attempt != 1 && !again {
			l.t.Errorf("run %s (%s): step %s is %s, attempt %d", e.id, e.kind, step.StepID, step.Status, step.Attempt)
		}
	}
}

// verifyCount counts: every run was ordered, and acknowledged, once.
func (l *load) verifyCount() {
	l.t.Helper()
	orders, families := len(l.runs)+l.others, 0
	for _, e := range l.runs {
		if e.kind == "family" {
			families++
		}
	}
	// An order that nobody answered in time may have been taken.
	unanswered := l.counts.operations - l.counts.succeeded
	if n := number(l.t, l.c.tables, `SELECT count(*) FROM runs WHERE parent_run IS NULL`); n < orders || n > orders+unanswered {
		l.t.Errorf("%d runs are in the tables, %d were acknowledged", n, orders)
	}
	if n := number(l.t, l.c.tables, `SELECT count(*) FROM runs WHERE parent_run IS NOT NULL`); n < families || n > families+unanswered {
		l.t.Errorf("%d runs were started by others, want %d", n, families)
	}
}

// verifyCalls holds the calls against the faults: a step is called once, and
// again only when a fault came in between. What follows it comes after the call
// whose result counts.
func (l *load) verifyCalls(overlaps bool) {
	l.t.Helper()
	repeated := 0
	for _, e := range l.runs {
		byKey := map[string][]sink.Call{}
		for _, call := range l.sink.Of(e.id) {
			byKey[call.Key] = append(byKey[call.Key], call)
		}
		var last, block time.Time // the end of the calls that count
		for _, path := range paths[e.kind] {
			path, calls := strings.CutSuffix(path, "!")
			if !calls {
				continue
			}
			of := byKey[e.id+"/"+path]
			if len(of) == 0 {
				l.t.Errorf("%s/%s was never called", e.id, path)
				continue
			}
			repeated += len(of) - 1
			l.verifyRepeats(of, overlaps)
			counts := of[l.counted(e, path, len(of))-1]
			if inBlock := strings.Contains(path, "["); !inBlock && !block.IsZero() {
				last, block = block, time.Time{}
			} else if inBlock && block.Before(counts.Ended) {
				block = counts.Ended
			}
			if of[0].At.Before(last) {
				l.t.Errorf("%s/%s was called before the step it needs had its result", e.id, path)
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
		if !l.c.faultBetween(before.At, again.At) {
			l.t.Errorf("%s was called at %s and again at %s, and nothing was wrong in between",
				again.Key, before.At.Format(time.TimeOnly+".000"), again.At.Format(time.TimeOnly+".000"))
		}
		if !overlaps && (before.Ended.IsZero() || before.Ended.After(again.At)) {
			l.t.Errorf("%s was called again while it was being called: %+v, %+v", again.Key, before, again)
		}
	}
}

// counted is which call of a step had the result that was recorded: the sink
// says so in its answer.
func (l *load) counted(e *execution, path string, calls int) int {
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

// verifyDeliveries holds what has arrived against the tables: every delivery
// has arrived, with the bytes of its event each time.
func (l *load) verifyDeliveries() {
	l.t.Helper()
	rows, err := l.c.tables.Query(context.Background(), `SELECT d.id, d.status, e.id, e.type, e.body FROM deliveries d JOIN events e ON e.id = d.event_id`)
	if err != nil {
		l.t.Fatal(err)
	}
	type delivery struct {
		ID, Status, EventID, Type string
		Body                      []byte
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[delivery])
	if err != nil {
		l.t.Fatal(err)
	}
	again := 0
	for _, d := range all {
		var letters []sink.Letter
		for _, r := range l.receivers {
			letters = append(letters, r.Letters(d.ID)...)
		}
		if len(letters) == 0 || d.Status != "delivered" {
			l.t.Errorf("%s has arrived %d times and is %s", d.ID, len(letters), d.Status)
		}
		for _, letter := range letters {
			if want := (sink.Letter{Path: "/all", Event: d.Type, WebhookID: d.EventID, Body: string(d.Body)}); letter != want {
				l.t.Errorf("%s arrived as %+v, want %+v", d.ID, letter, want)
			}
		}
		again += max(0, len(letters)-1)
	}
	l.t.Logf("%d deliveries, %d repeated", len(all), again)
}

// summarize prints the counts, and refuses a test in which too little happened.
func (l *load) summarize() {
	l.t.Helper()
	n := l.counts
	rate := 100 * float64(n.succeeded) / float64(max(1, n.operations))
	l.t.Logf("%d runs; %.1f %% of %d operations succeeded; %d requests, %d unavailable, %d without an answer, %d replays; slowest answer %v",
		len(l.runs), rate, n.operations, n.requests, n.unavailable, n.lost, n.replays, l.slowest.Round(time.Millisecond))
	if rate < 80 {
		l.t.Errorf("only %.1f %% of the operations succeeded", rate)
	}
	if len(l.runs) < l.least {
		l.t.Errorf("%d runs are too few for the test to mean anything", len(l.runs))
	}
}
