package storetest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/state"
	"github.com/stepmill/stepmill/internal/table"
)

func testOperations(t *testing.T, w *harness) {
	t.Run("every operation", func(t *testing.T) { testEveryOperation(t, w) })
	t.Run("a repeated commit", func(t *testing.T) { testRepeatedOperations(t, w) })
	t.Run("a lost lease", func(t *testing.T) { testOperationsWithoutLease(t, w) })
	t.Run("a fault in one of several", func(t *testing.T) { testFaultyOperation(t, w) })
	t.Run("another attempt", func(t *testing.T) { testRetriedOperation(t, w) })
	t.Run("an answer that arrived", func(t *testing.T) { testOperationsBesideAnAnswer(t, w) })
	t.Run("races", func(t *testing.T) { testOperationRaces(t, w) })
}

func keyOperation(scope state.Scope, op state.Operation) action.Operation {
	return action.Operation{Key: &state.Write{Scope: scope, Op: op}}
}

func rowOperation(of table.Table, op table.Operation) action.Operation {
	return action.Operation{Rows: &table.Write{Scope: scopeOf(of), Op: op}}
}

// operating returns a decision with a running step for each operation.
func operating(rev int, operations ...run.Operation) run.Decision {
	d := run.Decision{Rev: rev, Operations: operations}
	for i, op := range operations {
		d.Steps = append(d.Steps, newStep(op.Path, i+1, run.StepRunning))
	}
	return d
}

// perform commits a decision with operations and returns their answers.
func (w *harness) perform(t *testing.T, r run.Run, d run.Decision) map[string]string {
	t.Helper()
	committed := must(w.Leases.Commit(t.Context(), firstLease(r), r, d))(t)
	equal(t, "held", committed.Held, true)
	answers := map[string]string{}
	for path, answer := range committed.Answers {
		answers[path] = string(answer.Value)
	}
	stored := map[string]string{}
	for path, answer := range must(w.Leases.Answers(t.Context(), r.ID))(t) {
		if _, ok := answers[path]; ok {
			stored[path] = string(answer.Value)
		}
	}
	equal(t, "stored answers", stored, answers)
	return answers
}

func testEveryOperation(t *testing.T, w *harness) {
	ws := w.workspace(t).ID
	wf, of := w.workflow(t, ws), w.table(t, ws, "customers")
	r, keys := w.start(t, wf, "node_1"), keyScope(ws, wf.ID)
	insert := insertOp(`{"email": "ada", "amount": 9007199254740993.5}`)
	rows := func(op table.Operation) action.Operation {
		made := rowOperation(of, op)
		made.Rows.Scope.At = keys.At
		return made
	}
	expires := keys.At.Add(time.Hour)
	at := clock.Format(keys.At)
	row := func(amount string) string {
		return `{"id":"` + insert.RowID + `","values":{"amount":` + amount + `,"city":null,"email":"ada","extra":null,"paid":null,"since":null},"created_at":"` + at + `","updated_at":"` + at + `"}`
	}
	all := table.Selector{Filter: json.RawMessage(`{"column": "email", "op": "!=", "value": "x"}`), Limit: 5}
	got := w.perform(t, r, operating(1,
		run.Operation{Path: "a insert", Operation: rows(insert)},
		run.Operation{Path: "b upsert", Operation: rows(upsertOp(`{"email": "ada", "amount": 1}`))},
		run.Operation{Path: "c update", Operation: rows(table.Update{Selector: byKey("ada"), Values: valuesOf(`{"amount": 2}`)})},
		run.Operation{Path: "d update all", Operation: rows(table.Update{Selector: all, Values: valuesOf(`{"city": null}`)})},
		run.Operation{Path: "e increment", Operation: rows(table.Increment{Selector: byKey("ada"), Column: "amount"})},
		run.Operation{Path: "f delete", Operation: rows(table.Delete{Selector: all})},
		run.Operation{Path: "g set", Operation: keyOperation(keys, state.Set{Name: "k", Value: json.RawMessage(`[1]`), Expires: &expires})},
		run.Operation{Path: "h set", Operation: keyOperation(keys, state.Set{Name: "k", Value: json.RawMessage(`2`), IfAbsent: true})},
		run.Operation{Path: "i increment", Operation: keyOperation(keys, state.Increment{Name: "n", By: json.RawMessage("2.5")})},
		run.Operation{Path: "j delete", Operation: keyOperation(keys, state.Delete{Name: "k"})},
		run.Operation{Path: "k delete", Operation: keyOperation(keys, state.Delete{Name: "k"})},
	))
	until := clock.Format(expires)
	equal(t, "answers", got, map[string]string{
		"a insert":     `{"output":{"row":` + row("9007199254740993.5") + `}}`,
		"b upsert":     `{"output":{"row":` + row("1") + `,"created":false}}`,
		"c update":     `{"output":{"row":` + row("2") + `,"count":1}}`,
		"d update all": `{"output":{"count":1}}`,
		"e increment":  `{"output":{"row":` + row("3") + `}}`,
		"f delete":     `{"output":{"count":1}}`,
		"g set":        `{"output":{"set":true,"created":true,"value":[1],"expires_at":"` + until + `"}}`,
		"h set":        `{"output":{"set":false,"created":false,"value":[1],"expires_at":"` + until + `"}}`,
		"i increment":  `{"output":{"set":true,"created":true,"value":2.5,"expires_at":null}}`,
		"j delete":     `{"output":{"deleted":true}}`,
		"k delete":     `{"output":{"deleted":false}}`,
	})
	equal(t, "rows", w.count(t, `SELECT count(*) FROM table_rows WHERE table_id = $1`, of.ID), 0)
	w.checkState(t, ws)
}

func testRepeatedOperations(t *testing.T, w *harness) {
	ws := w.workspace(t).ID
	wf, of := w.workflow(t, ws), w.table(t, ws, "customers")
	r, keys := w.start(t, wf, "node_1"), keyScope(ws, "")
	d := operating(1,
		run.Operation{Path: "a", Operation: keyOperation(keys, state.Increment{Name: "n"})},
		run.Operation{Path: "b", Operation: rowOperation(of, insertOp(`{"email": "ada"}`))},
		run.Operation{Path: "c", Operation: rowOperation(of, insertOp(`{"email": "ada"}`))},
	)
	first := w.perform(t, r, d)
	equal(t, "answers of the second time", w.perform(t, r, d), first)
	equal(t, "the counter", string(found(w.State.GetKey(t.Context(), keys, "n"))(t).Value), "1")
	equal(t, "rows", w.count(t, `SELECT count(*) FROM table_rows WHERE table_id = $1`, of.ID), 1)
	// The next decision adds an operation, and one of the old ones comes again.
	d.Rev, d.Operations[2] = 2, run.Operation{Path: "d", Operation: keyOperation(keys, state.Increment{Name: "n"})}
	d.Steps[2] = newStep("d", 4, run.StepRunning)
	second := w.perform(t, r, d)
	equal(t, "of the first step", second["a"], first["a"])
	equal(t, "of the new step", second["d"], `{"output":{"set":true,"created":false,"value":2,"expires_at":null}}`)
	w.checkState(t, ws)
}

func testOperationsWithoutLease(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	wf := w.workflow(t, ws)
	keys := keyScope(ws, "")
	increment := func(r run.Run, lease run.Lease) run.Committed {
		t.Helper()
		op := run.Operation{Path: "a", Operation: keyOperation(keys, state.Increment{Name: "n"})}
		return must(w.Leases.Commit(ctx, lease, r, operating(1, op)))(t)
	}
	nothing := func(what string, got run.Committed) {
		t.Helper()
		equal(t, what, got, run.Committed{})
	}

	taken := w.start(t, wf, "node_1")
	_, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: taken.ID, Epoch: 1}, "node_2")
	returns(ok, err)(t, "takeover", true)
	nothing("the old node", increment(taken, firstLease(taken)))
	missing(w.State.GetKey(ctx, keys, "n"))(t, "the key")
	second := run.Lease{RunID: taken.ID, Epoch: 2}
	equal(t, "the new node", string(increment(taken, second).Answers["a"].Value), `{"output":{"set":true,"created":true,"value":1,"expires_at":null}}`)

	// The node that takes over after the commit gets the answer, not another increment.
	_, ok, err = w.Leases.Activate(ctx, run.Wake{RunID: taken.ID, Epoch: 2}, "node_3")
	returns(ok, err)(t, "takeover", true)
	nothing("a late repetition", increment(taken, second))
	equal(t, "the third node", string(increment(taken, run.Lease{RunID: taken.ID, Epoch: 3}).Answers["a"].Value), `{"output":{"set":true,"created":true,"value":1,"expires_at":null}}`)

	cancelled := w.start(t, wf, "node_1")
	returns(w.Runs.CancelRun(ctx, newCancellation(t, cancelled)))(t, "cancel", true)
	nothing("a cancelled run", increment(cancelled, firstLease(cancelled)))
	other := w.workflow(t, ws)
	deleted := w.start(t, other, "node_1")
	w.deleteWorkflow(t, other)
	nothing("a deleted workflow", increment(deleted, firstLease(deleted)))
	equal(t, "the counter", string(found(w.State.GetKey(ctx, keys, "n"))(t).Value), "1")
	w.checkState(t, ws)
}

func testFaultyOperation(t *testing.T, w *harness) {
	ws := w.workspace(t).ID
	wf, of := w.workflow(t, ws), w.table(t, ws, "customers")
	r, keys := w.start(t, wf, "node_1"), keyScope(ws, "")
	missing, unfit := of, of
	missing.ID, unfit.ID = "nothing", "\x00" // a text that PostgreSQL rejects
	large := rowOperation(of, insertOp(`{"email": "large", "city": "`+strings.Repeat("x", auth.Free.Limits().RowBytes)+`"}`))
	got := w.perform(t, r, operating(1,
		run.Operation{Path: "a", Operation: keyOperation(keys, state.Increment{Name: "n"})},
		run.Operation{Path: "b", Operation: rowOperation(of, insertOp(`{"email": "ada", "amount": "many", "town": 1}`))},
		run.Operation{Path: "c", Operation: rowOperation(missing, insertOp(`{"email": "ada"}`))},
		run.Operation{Path: "d", Operation: rowOperation(of, table.Update{Selector: byKey("ada"), Values: valuesOf(`{"amount": 1}`)})},
		run.Operation{Path: "e", Operation: large},
		run.Operation{Path: "f", Operation: keyOperation(keys, state.Increment{Name: "n"})},
		run.Operation{Path: "g", Operation: rowOperation(unfit, table.Delete{Selector: table.Selector{ID: "\x00"}})},
		run.Operation{Path: "h", Operation: rowOperation(of, table.Increment{Selector: table.Selector{ID: "\x00"}, Column: "amount"})},
	))
	equal(t, "answers", got, map[string]string{
		"g": `{"error":{"code":"table_not_found","message":"there is no table \"\\x00\""}}`,
		"h": `{"error":{"code":"row_not_found","message":"the table has no row \"\\x00\""}}`,
		"a": `{"output":{"set":true,"created":true,"value":1,"expires_at":null}}`,
		"b": `{"error":{"code":"invalid_input","message":"with/values/amount: must be a number: \"many\" is not a number; with/values/town: the table customers has no column \"town\""}}`,
		"c": `{"error":{"code":"table_not_found","message":"there is no table \"nothing\""}}`,
		"d": `{"error":{"code":"row_not_found","message":"the table has no row with the key \"ada\""}}`,
		"e": `{"error":{"code":"plan_limit_exceeded","message":"the free plan allows 32768 bytes for a row (row_bytes); delete some first or store less"}}`,
		"f": `{"output":{"set":true,"created":false,"value":2,"expires_at":null}}`,
	})
	w.checkState(t, ws)
}

// testRetriedOperation removes the answer of an operation that failed.
func testRetriedOperation(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	wf, of := w.workflow(t, ws), w.table(t, ws, "customers")
	r := w.start(t, wf, "node_1")
	update := table.Update{Selector: byKey("ada"), Values: valuesOf(`{"amount": 1}`)}
	d := operating(1, run.Operation{Path: "a", Operation: rowOperation(of, update)})
	first := w.perform(t, r, d)["a"]
	must(w.Tables.InsertRow(ctx, scopeOf(of), insertOp(`{"email": "ada"}`)))(t)
	equal(t, "repeated", w.perform(t, r, d)["a"], first)

	waits := newStep("a", 1, run.StepWaiting)
	for range 2 { // also if the commit is repeated
		returns(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 2, Steps: []run.Step{waits}, Retried: []string{"a"}}))(t, "wait for the retry", true)
		equal(t, "answers", len(must(w.Leases.Answers(ctx, r.ID))(t)), 0)
	}
	d.Rev = 3
	equal(t, "the next attempt", w.perform(t, r, d)["a"] != first, true)
	equal(t, "the value", string(found(w.Tables.GetRow(ctx, scopeOf(of), table.Get{Selector: byKey("ada")}))(t).Values["amount"]), "1")
}

// testOperationsBesideAnAnswer rejects a decision as a whole that times out a step
// whose answer has arrived.
func testOperationsBesideAnAnswer(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	wf := w.workflow(t, ws)
	r, keys := w.start(t, wf, "node_1"), keyScope(ws, "")
	asks := waitingStep("ask", 1, action.AwaitsAnswer)
	returns(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Steps: []run.Step{asks}}))(t, "wait", true)
	w.exec(t, `UPDATE steps SET answer = '{}' WHERE run_id = $1 AND path = 'ask'`, r.ID)
	d := operating(2, run.Operation{Path: "a", Operation: keyOperation(keys, state.Increment{Name: "n"})})
	d.Unanswered = []string{"ask"}
	committed, err := w.Leases.Commit(ctx, firstLease(r), r, d)
	fails(committed, err)(t, "the decision")
	equal(t, "committed", committed, run.Committed{})
	missing(w.State.GetKey(ctx, keys, "n"))(t, "the key")
}

func testOperationRaces(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	wf, of := w.workflow(t, ws), w.table(t, ws, "customers")
	runs, keys := w.startMany(t, wf, 32), keyScope(ws, "")
	equal(t, "runs that have created the row", concurrently(t, len(runs), func(i int) (bool, error) {
		d := operating(1,
			run.Operation{Path: "a", Operation: rowOperation(of, upsertOp(`{"email": "ada"}`))},
			run.Operation{Path: "b", Operation: keyOperation(keys, state.Increment{Name: "n"})},
		)
		if _, err := w.Leases.Commit(ctx, firstLease(runs[i]), runs[i], d); err != nil {
			return false, err
		}
		again, err := w.Leases.Commit(ctx, firstLease(runs[i]), runs[i], d) // its result was lost
		var answer struct {
			Output struct {
				Created bool `json:"created"`
			} `json:"output"`
		}
		if err == nil {
			err = json.Unmarshal(again.Answers["a"].Value, &answer)
		}
		return answer.Output.Created, err
	}), 1)
	equal(t, "the counter", string(found(w.State.GetKey(ctx, keys, "n"))(t).Value), "32")
	equal(t, "rows", w.count(t, `SELECT count(*) FROM table_rows WHERE table_id = $1`, of.ID), 1)
	w.checkState(t, ws)
}
