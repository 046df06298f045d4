package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/state"
)

// key returns the value of a key of a workflow, or of the workspace, as JSON. It returns
// an empty text if there is no such key.
func (w *world) key(workflowID, name string) string {
	w.t.Helper()
	found, err := w.store.State.GetKey(context.WithoutCancel(w.t.Context()), state.Scope{WorkspaceID: w.actor.Workspace.ID, WorkflowID: workflowID, At: clock.Now()}, name)
	if err != nil {
		w.t.Fatal(err)
	}
	if found == nil {
		return ""
	}
	return string(found.Value)
}

// exec changes rows directly, without the store.
func (w *world) exec(statement string, args ...any) {
	w.t.Helper()
	err := w.db.Write(context.WithoutCancel(w.t.Context()), func(c database.Conn) error { return c.Do(statement, args...) })
	if err != nil {
		w.t.Fatal(err)
	}
}

// The operations of parallel rounds share commits, up to a limit.
func TestOperationsShareCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var commits, most, total atomic.Int64
	w.start(&hooked{Store: w.store.Leases, before: func(_ run.Lease, d run.Decision) {
		if n := int64(len(d.Operations)); n > 0 {
			commits.Add(1)
			total.Add(n)
			most.Store(max(most.Load(), n))
		}
	}})
	flow := w.workflow(`[{"id": "rounds", "foreach": "trigger.payload.items", "parallel": 100, "steps": [
		{"id": "count", "uses": "state.increment", "with": {"key": "n", "by": "${{ item }}"}},
		{"id": "again", "if": "steps.count.output.value > 0", "uses": "state.increment", "with": {"key": "n"}}]}]`)
	items, sum := make([]int, 100), 0
	for i := range items {
		items[i] = i + 1
		sum += i + 2
	}
	payload, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		t.Fatal(err)
	}
	d := w.finished(w.startRun(flow, string(payload)))
	if got := w.key(flow, "n"); d.Status != run.Succeeded || got != fmt.Sprint(sum) {
		t.Fatalf("%s %+v, the counter is %s, want %d", d.Status, d.Error, got, sum)
	}
	if total.Load() != 200 || most.Load() > 32 || commits.Load() > 10 {
		t.Errorf("%d operations in %d commits, at most %d in one", total.Load(), commits.Load(), most.Load())
	}
}

// An operation with a filter can take long, so a commit has one at most.
func TestOperationsWithFiltersAreCommittedOneByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fileTable()
	var most, total atomic.Int64
	w.start(&hooked{Store: w.store.Leases, before: func(_ run.Lease, d run.Decision) {
		total.Add(int64(len(d.Operations)))
		most.Store(max(most.Load(), int64(len(d.Operations))))
	}})
	flow := w.workflow(`[{"id": "rounds", "foreach": "1..20", "parallel": 20, "steps": [
		{"id": "clear", "uses": "table.delete", "with": {"table": "people", "filter": {"column": "name", "op": "=", "value": "nobody"}}}]}]`)
	d := w.finished(w.startRun(flow, `{}`))
	if d.Status != run.Succeeded || total.Load() != 20 || most.Load() != 1 {
		t.Errorf("%s %+v: %d operations, at most %d in one commit", d.Status, d.Error, total.Load(), most.Load())
	}
}

// A commit whose result is lost is repeated, without repeating its operations.
func TestRepeatedCommitKeepsItsOperations(t *testing.T) {
	t.Parallel()
	for name, st := range map[string]*flaky{"before": {before: 3}, "after": {after: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			st.Store = w.store.Leases
			w.start(st)
			flow := w.workflow(`[{"id": "a", "uses": "state.increment", "with": {"key": "n"}}, {"id": "b", "uses": "state.increment", "with": {"key": "n"}}]`)
			d := w.finished(w.startRun(flow, `{}`))
			if got := w.key(flow, "n"); d.Status != run.Succeeded || got != "2" || !strings.Contains(string(d.Steps[1].Output), `"value":2`) {
				t.Fatalf("%+v, the counter is %s", d, got)
			}
		})
	}
}

// A run that ends early performs no more operations: their steps are cancelled.
func TestEndOfARunDropsItsOperations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	flow := w.workflow(`[
		{"id": "set", "needs": [], "uses": "state.set", "with": {"key": "a", "value": 1}},
		{"id": "stop", "needs": [], "uses": "flow.stop"}]`)
	d := w.finished(w.startRun(flow, `{}`))
	if got := w.key(flow, "a"); d.Status != run.Succeeded || d.Steps[0].Status != run.StepCancelled || got != "" {
		t.Errorf("%+v, the key is %q", d, got)
	}
}

// A step whose operation exceeds a limit is retried, and each attempt is a new
// operation. The engine crashes before or after its n-th commit, for every n until the
// run ends.
func TestOperationIsRetried(t *testing.T) {
	t.Parallel()
	for _, happened := range []bool{false, true} {
		for commits, died := 0, true; died; commits++ {
			synctest.Test(t, func(t *testing.T) { died = retryOperation(t, commits, happened) })
		}
	}
}

// retryOperation reports whether the engine crashed before the run ended.
func retryOperation(t *testing.T, commits int, happened bool) bool {
	w := newWorld(t)
	w.exec(`INSERT INTO state_usage (workspace_id, tables, table_rows, state_keys, stored_bytes) VALUES ($1, 0, 0, $2, 0)`,
		w.actor.Workspace.ID, w.actor.Workspace.Plan.Limits().StateKeys)
	flow := w.workflow(`[{"id": "a", "retry": {"max_attempts": 3, "initial": "1h"}, "uses": "state.set", "with": {"key": "a", "value": 1}},
		{"id": "b", "uses": "state.increment", "with": {"key": "n"}}]`)
	m := newCrashingStore(w.store.Leases, commits, happened)
	n := w.start(m)
	defer func() { n.end() }()
	id, died := w.startRun(flow, `{}`), false
	replaceIfDead := func() {
		synctest.Wait()
		if died || m.left.Load() >= 0 {
			return
		}
		died = true
		n.end()
		n = w.start(w.store.Leases)
		synctest.Wait()
	}
	replaceIfDead()
	if s := w.get(id).Steps[0]; s.Status != run.StepWaiting || s.Attempt != 1 || s.Error == nil || s.Error.Code != "plan_limit_exceeded" {
		t.Fatalf("crashed at commit %d (committed: %v): the step is %+v", commits, happened, s)
	}
	w.exec(`UPDATE state_usage SET state_keys = 0 WHERE workspace_id = $1`, w.actor.Workspace.ID)
	time.Sleep(2 * time.Hour)
	replaceIfDead()
	d := w.endOf(id)
	if d.Status != run.Succeeded || d.Steps[0].Attempt != 2 || len(d.Attempts) != 1 || w.key(flow, "a") != "1" || w.key(flow, "n") != "1" {
		t.Errorf("crashed at commit %d (committed: %v): %s, %+v", commits, happened, d.Status, d.Steps)
	}
	return died
}

// An engine that stops finishes the commit of the operations in progress and releases
// the run.
func TestStopBetweenOperations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stopped := make(chan struct{})
	var n *node
	var commits atomic.Int64
	ready := make(chan struct{})
	n = w.start(&hooked{Store: w.store.Leases, after: func(run.Lease, run.Decision) {
		if commits.Add(1) == 20 {
			<-ready
			n.stop()
			close(stopped)
		}
	}})
	close(ready)
	flow := w.workflow(`[{"id": "rounds", "foreach": "trigger.payload.items", "steps": [{"id": "count", "uses": "state.increment", "with": {"key": "n"}}]}]`)
	id := w.startRun(flow, `{"items": [`+strings.Repeat("1,", 199)+`1]}`)
	<-stopped
	n.end()
	if d := w.get(id); d.Status != run.Running || commits.Load() > 25 {
		t.Fatalf("the run is %s after %d commits", d.Status, commits.Load())
	}
	w.start(w.store.Leases)
	if d := w.finished(id); d.Status != run.Succeeded || w.key(flow, "n") != "200" {
		t.Errorf("the run is %s, the counter is %s", d.Status, w.key(flow, "n"))
	}
}

// Masked values get into neither tables nor keys.
func TestOperationsStoreMaskedValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	flow := w.workflow(`[` + masking + `
		{"id": "set", "uses": "state.set", "with": {"key": "token", "value": "is ${{ steps.login.output.body.access_token }}"}},
		{"id": "bad", "on_error": "continue", "uses": "state.set", "with": {"key": "k:${{ steps.login.output.body.access_token }}", "value": 1}}]`)
	d := w.finished(w.startRun(flow, `{}`))
	if got := w.key(flow, "token"); d.Status != run.Succeeded || got != `"is ***"` {
		t.Errorf("the run is %s %+v, the key is %s", d.Status, d.Error, got)
	}
	if bad := d.Steps[len(d.Steps)-1]; bad.Error == nil || bad.Error.Code != "invalid_input" {
		t.Errorf("a key with a masked value: %+v", bad)
	}
}

// A step test performs the operation of its step.
func TestStepTestPerformsOperations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.start(w.store.Leases)
	flow := w.workflow(`[{"id": "count", "uses": "state.increment", "with": {"key": "n"}}, {"id": "bad", "uses": "table.delete", "with": {"table": "none", "key": 1}}]`)
	program, err := w.plans.Get(t.Context(), flow, 2)
	if err != nil || program == nil {
		t.Fatal(program, err)
	}
	test := func(i int) run.StepTestResult {
		t.Helper()
		result, err := n.engine.TestStep(t.Context(), run.StepExecution{
			WorkspaceID: w.actor.Workspace.ID, Plan: auth.Free, Step: program.Steps[i],
			Env: &expr.Env{Workflow: expr.Workflow{ID: flow}, Steps: map[string]expr.Step{}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	test(0)
	if got := test(0); got.Status != run.StepSucceeded || string(got.Output) != `{"created":false,"expires_at":null,"set":true,"value":2}` || w.key(flow, "n") != "2" {
		t.Errorf("%+v, the counter is %s", got, w.key(flow, "n"))
	}
	if got := test(1); got.Status != run.StepFailed || got.Error.Code != "table_not_found" {
		t.Errorf("%+v", got)
	}
}

// A failure of the database makes a step fail only if retries do not help.
func TestFailedReadIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	broken := errors.New("disk")
	w.reads.Store(&broken)
	id := w.startRun(w.workflow(`[{"id": "get", "retry": {"initial": "10ms"}, "uses": "state.get", "with": {"key": "a", "default": 1}}]`), `{}`)
	for len(w.get(id).Attempts) == 0 {
		time.Sleep(time.Millisecond)
	}
	if failed := w.get(id).Attempts[0].Error; failed.Code != "read_failed" {
		t.Errorf("%+v", failed)
	}
	w.reads.Store(nil)
	if d := w.finished(id); d.Status != run.Succeeded {
		t.Errorf("%+v", d)
	}
}
