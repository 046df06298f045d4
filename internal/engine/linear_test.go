package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/test/harness"
)

// TestRunIsLinearizable performs all operations on one run concurrently. Their results must
// match those of a sequential execution, in an order that is consistent with time.
func TestRunIsLinearizable(t *testing.T) {
	t.Parallel()
	const rounds, callers, each = 40, 5, 6
	w := newWorld(t)
	flow := w.workflow(`[{"id": "ask", "uses": "flow.approval"}]`)
	seed := harness.Seed(t)
	for round := range rounds {
		c := &sharedRun{world: w, begun: time.Now(), start: w.newStart(flow)}
		var all sync.WaitGroup
		for n := range callers {
			random := harness.Random(seed, round*callers+n)
			all.Go(func() {
				for range each {
					c.do(n, drawOperation(random, n))
				}
			})
		}
		all.Wait()
		if len(c.broken) > 0 {
			t.Fatal(c.broken)
		}
		switch porcupine.CheckOperationsTimeout(sequentialModel(), c.history, time.Minute) {
		case porcupine.Ok:
		case porcupine.Illegal:
			t.Fatalf("INVARIANT: round %d is not linearizable:\n%s", round, c.describe())
		case porcupine.Unknown:
			t.Logf("round %d is inconclusive: checking it took too long", round)
		}
	}
}

// operation is an operation of a caller on the run.
type operation struct {
	kind  string
	epoch int64
	node  string
}

func drawOperation(random *rand.Rand, caller int) operation {
	kinds := []string{"start", "start", "activate", "activate", "activate", "release", "finish", "cancel", "answer", "answer", "retry", "get"}
	return operation{kind: kinds[random.IntN(len(kinds))], epoch: 1 + random.Int64N(4), node: fmt.Sprintf("node_%d", caller)}
}

// sharedRun is one run with all its callers.
type sharedRun struct {
	*world
	begun time.Time
	start run.Start

	mu      sync.Mutex
	history []porcupine.Operation
	broken  []error
}

func (w *world) newStart(flow string) run.Start {
	w.t.Helper()
	head, err := w.store.Runs.WorkflowRef(w.t.Context(), w.actor.Workspace.ID, flow)
	if err != nil {
		w.t.Fatal(err)
	}
	r := run.Run{
		ID: uid.New(uid.Run), WorkspaceID: w.actor.Workspace.ID, WorkflowID: flow, WorkflowVersion: head.Version, Status: run.Running,
		StartedAt: clock.Now(), Trigger: run.Trigger{Type: run.Manual, Payload: []byte("{}")},
		// The run of a step can be requested twice while its parent is running.
		Parent: &run.Parent{RunID: w.startRun(flow, "{}"), StepID: "above"},
	}
	event, err := run.StartedEvent(r, head.Name)
	if err != nil {
		w.t.Fatal(err)
	}
	ask := run.Step{
		Path: "ask", Seq: 1, Name: "ask", Type: "flow.approval", Status: run.StepWaiting, Attempt: 1,
		StartedAt: r.StartedAt, AttemptAt: r.StartedAt, Awaits: action.AwaitsAnswer,
	}
	return run.Start{Run: r, Revision: head.Revision, WorkflowName: head.Name, Plan: head.Plan, Steps: []run.Step{ask}, Event: event}
}

// do performs an operation and records its start, end and result.
func (c *sharedRun) do(caller int, d operation) {
	called := time.Since(c.begun).Nanoseconds()
	told, err := c.ask(context.Background(), d)
	returned := time.Since(c.begun).Nanoseconds()
	var refused *fault.Error
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && !errors.As(err, &refused) && !errors.Is(err, run.ErrStarted) {
		c.broken = append(c.broken, fmt.Errorf("%+v: %w", d, err))
	}
	c.history = append(c.history, porcupine.Operation{ClientId: caller, Input: d, Call: called, Output: told, Return: returned})
}

// ask returns "yes", "no" or the status of the run.
func (c *sharedRun) ask(ctx context.Context, d operation) (string, error) {
	r, lease := c.start.Run, run.Lease{RunID: c.start.Run.ID, Epoch: d.epoch}
	switch d.kind {
	case "start":
		ok, err := c.store.Runs.StartRun(ctx, c.start)
		return yes(ok, err)
	case "activate":
		_, ok, err := c.store.Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: d.epoch}, d.node)
		return yes(ok, err)
	case "release":
		committed, err := c.store.Leases.Commit(ctx, lease, r, run.Decision{Rev: 1, Release: true, WakeAt: clock.Now().Add(time.Hour)})
		return yes(committed.Held, err)
	case "finish":
		return yes(c.finish(ctx, lease))
	case "cancel":
		_, err := c.runs.Cancel(ctx, c.actor, r.ID)
		return yes(err == nil, err)
	case "answer":
		_, err := c.runs.Resume(ctx, c.actor, r.ID, "ask", run.Resumption{Approved: true})
		return yes(err == nil, err)
	case "retry":
		_, err := c.runs.Retry(ctx, c.actor, r.ID, run.RetryOptions{})
		return yes(err == nil, err)
	}
	detail, err := c.runs.Get(ctx, c.actor, r.ID)
	return string(detail.Status), err
}

func yes(ok bool, err error) (string, error) {
	if ok && err == nil {
		return "yes", nil
	}
	return "no", err
}

// finish ends the run as the engine does after its only step.
func (c *sharedRun) finish(ctx context.Context, lease run.Lease) (bool, error) {
	now := clock.Now()
	ended, step := c.start.Run, c.start.Steps[0]
	ended.Status = run.Succeeded
	step.Status, step.Awaits, step.Output, step.FinishedAt = run.StepSucceeded, "", []byte("{}"), &now
	event, err := run.EndedEvent(ended, c.start.WorkflowName, now)
	if err != nil {
		return false, err
	}
	end := run.Finish{Status: run.Succeeded, At: now, Event: event}
	committed, err := c.store.Leases.Commit(ctx, lease, c.start.Run, run.Decision{Rev: 2, Steps: []run.Step{step}, Finish: &end})
	return committed.Held, err
}

func (c *sharedRun) describe() (text string) {
	for _, o := range c.history {
		text += fmt.Sprintf("%9d to %9d: %+v: %v\n", o.Call, o.Return, o.Input, o.Output)
	}
	return text
}

// sequentialRun is a run with one caller at a time.
type sequentialRun struct {
	status   string // empty: there is no run
	epoch    int64
	node     string
	answered bool
}

// sequentialModel returns the model: the result of each operation and the next state.
func sequentialModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return sequentialRun{} },
		Step: func(state, input, output any) (bool, any) {
			told, after := state.(sequentialRun).after(input.(operation))
			return told == output.(string), after
		},
	}
}

func (a sequentialRun) after(d operation) (string, sequentialRun) {
	running, ok := a.status == "running", false
	switch d.kind {
	case "start":
		if ok = a.status == ""; ok {
			a = sequentialRun{status: "running", epoch: 1}
		}
	case "activate":
		mine := a.epoch == d.epoch+1 && a.node == d.node
		if ok = running && (a.epoch == d.epoch || mine); ok {
			a.epoch, a.node = d.epoch+1, d.node
		}
	case "release":
		if ok = running && a.epoch == d.epoch; ok {
			a.node = ""
		}
	case "finish":
		if ok = running && a.epoch == d.epoch; ok {
			a.status = "succeeded"
		}
	case "cancel":
		if ok = running; ok {
			a.status = "cancelled"
		}
	case "answer":
		if ok = running && !a.answered; ok {
			a.answered = true
		}
	case "retry":
		ok = a.status == "cancelled"
	case "get":
		return a.status, a
	}
	if ok {
		return "yes", a
	}
	return "no", a
}
