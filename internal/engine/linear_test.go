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

// TestARunIsLinearizable lets many callers do everything to one run at the same
// time that can be done to it. What each of them was told must be what they
// would have been told one after the other, in an order that fits the clock.
func TestARunIsLinearizable(t *testing.T) {
	t.Parallel()
	const rounds, callers, each = 40, 5, 6
	w := newWorld(t)
	flow := w.workflow(`[{"id": "ask", "uses": "flow.approval"}]`)
	seed := harness.Seed(t)
	for round := range rounds {
		c := &contest{world: w, begun: time.Now(), start: w.newStart(flow)}
		var all sync.WaitGroup
		for n := range callers {
			random := harness.Random(seed, round*callers+n)
			all.Go(func() {
				for range each {
					c.do(n, drawDeal(random, n))
				}
			})
		}
		all.Wait()
		if len(c.broken) > 0 {
			t.Fatal(c.broken)
		}
		if result := porcupine.CheckOperationsTimeout(onePerTime(), c.history, 10*time.Second); result != porcupine.Ok {
			t.Fatalf("round %d: %s:\n%s", round, result, c.describe())
		}
	}
}

// deal is something that a caller does to the run, told what came of it.
type deal struct {
	kind  string
	epoch int64
	node  string
}

func drawDeal(random *rand.Rand, caller int) deal {
	kinds := []string{"start", "start", "activate", "activate", "activate", "release", "finish", "cancel", "answer", "answer", "retry", "get"}
	return deal{kind: kinds[random.IntN(len(kinds))], epoch: 1 + random.Int64N(4), node: fmt.Sprintf("node_%d", caller)}
}

// contest is one run with all its callers.
type contest struct {
	*world
	begun time.Time
	start run.Start

	mu      sync.Mutex
	history []porcupine.Operation
	broken  []error
}

func (w *world) newStart(flow string) run.Start {
	w.t.Helper()
	head, err := w.store.WorkflowHead(w.t.Context(), w.actor.Workspace.ID, flow)
	if err != nil {
		w.t.Fatal(err)
	}
	r := run.Run{
		ID: uid.New(uid.Run), WorkspaceID: w.actor.Workspace.ID, WorkflowID: flow, WorkflowVersion: head.Version, Status: run.Running,
		StartedAt: clock.Now(), Trigger: run.Trigger{Type: run.Manual, Payload: []byte("{}")},
		// The run of a step can be asked for twice, while the run above is under way.
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

// do does it, and notes when it began and ended and what came of it.
func (c *contest) do(caller int, d deal) {
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

// ask answers "yes" or "no", or with the status of the run.
func (c *contest) ask(ctx context.Context, d deal) (string, error) {
	r, lease := c.start.Run, run.Lease{RunID: c.start.Run.ID, Epoch: d.epoch}
	switch d.kind {
	case "start":
		ok, err := c.store.StartRun(ctx, c.start)
		return yes(ok, err)
	case "activate":
		_, ok, err := c.store.Activate(ctx, run.Wake{RunID: r.ID, Epoch: d.epoch}, d.node)
		return yes(ok, err)
	case "release":
		return yes(c.store.Commit(ctx, lease, r, run.Decision{Rev: 1, Release: true, WakeAt: clock.Now().Add(time.Hour)}))
	case "finish":
		return yes(c.finish(ctx, lease))
	case "cancel":
		_, err := c.runs.Cancel(ctx, c.actor, r.ID)
		return yes(err == nil, err)
	case "answer":
		_, err := c.runs.Resume(ctx, c.actor, r.ID, "ask", run.Resumption{Approved: true})
		return yes(err == nil, err)
	case "retry":
		_, err := c.runs.Retry(ctx, c.actor, r.ID, false)
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

// finish ends the run as the engine does when its only step has ended.
func (c *contest) finish(ctx context.Context, lease run.Lease) (bool, error) {
	now := clock.Now()
	ended, step := c.start.Run, c.start.Steps[0]
	ended.Status = run.Succeeded
	step.Status, step.Awaits, step.Output, step.FinishedAt = run.StepSucceeded, "", []byte("{}"), &now
	event, err := run.EndedEvent(ended, c.start.WorkflowName, now)
	if err != nil {
		return false, err
	}
	end := run.Finish{Status: run.Succeeded, At: now, Event: event}
	return c.store.Commit(ctx, lease, c.start.Run, run.Decision{Rev: 2, Steps: []run.Step{step}, Finish: &end})
}

func (c *contest) describe() (text string) {
	for _, o := range c.history {
		text += fmt.Sprintf("%9d to %9d: %+v: %v\n", o.Call, o.Return, o.Input, o.Output)
	}
	return text
}

// alone is a run with one caller at a time.
type alone struct {
	status   string // empty: there is no run
	epoch    int64
	node     string
	answered bool
}

// onePerTime is the model: what each deal answers, and what it leaves behind.
func onePerTime() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return alone{} },
		Step: func(state, input, output any) (bool, any) {
			told, after := state.(alone).after(input.(deal))
			return told == output.(string), after
		},
	}
}

func (a alone) after(d deal) (string, alone) {
	running, ok := a.status == "running", false
	switch d.kind {
	case "start":
		if ok = a.status == ""; ok {
			a = alone{status: "running", epoch: 1}
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
