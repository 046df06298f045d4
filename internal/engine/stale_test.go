package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/run"
)

// withoutAnswers is a store that hides answers until the run is read again.
type withoutAnswers struct{ engine.Store }

func (withoutAnswers) Answers(context.Context, string) (map[string]run.StepAnswer, error) {
	return nil, nil
}

// TestAcceptedAnswerDoesNotTimeOut has an engine that does not know the answer when the
// step times out. Its decision is rejected, and the run is read again.
func TestAcceptedAnswerDoesNotTimeOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(withoutAnswers{w.store.Leases})
	id := w.startRun(w.workflow(`[
		{"id": "busy", "needs": [], "uses": "test.effect", "with": {"gate": "busy"}},
		{"id": "ask", "needs": [], "uses": "flow.approval", "with": {"timeout": "2s"}}
	]`), `{}`)
	<-w.effects.begun
	for w.get(id).WaitingFor() == nil && len(w.get(id).Steps) < 2 {
		time.Sleep(time.Millisecond)
	}
	for {
		if _, err := w.runs.Resume(t.Context(), w.actor, id, "ask", run.Resumption{Approved: true}); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	<-w.effects.begun // the step in flight is executed again after the run was read again
	w.effects.open("busy")
	d := w.finished(id)
	if step := d.Steps[1]; d.Status != run.Succeeded || step.Path != "ask" || !strings.Contains(string(step.Output), `"approved":true`) {
		t.Errorf("%s: %+v", d.Status, d.Steps)
	}
}

// TestRunThatWaitsForItselfIsRejected has a workflow with a concurrency limit of 1 that runs
// itself and waits for that run.
func TestRunThatWaitsForItselfIsRejected(t *testing.T) {
	t.Parallel()
	for _, onLimit := range []string{"queue", "cancel_running"} {
		w := newWorld(t)
		w.start(w.store.Leases)
		flow := w.workflowWith(`[{"id": "self", "uses": "flow.run", "with": {"workflow_id": "${{ workflow.id }}"}}]`,
			`{"concurrency": {"limit": 1, "on_limit": "`+onLimit+`"}}`)
		d := w.finished(w.startRun(flow, `{}`))
		if d.Status != run.Failed || d.Error.Code != "run_not_started" || !strings.Contains(d.Error.Message, "concurrency_limit") {
			t.Errorf("%s: %s: %+v", onLimit, d.Status, d.Error)
		}
	}
}

// TestRunLogIsLimited writes more than the limit, in many steps.
func TestRunLogIsLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	d := w.finished(w.startRun(w.workflow(`[
		{"id": "all", "foreach": "trigger.payload.items", "steps": [
			{"id": "one", "uses": "log.write", "with": {"message": "`+strings.Repeat("x", 2000)+`"}}]}]`), numbers(5000)))
	if d.Status != run.Succeeded {
		t.Fatalf("%+v", d.Error)
	}
	size, last := 0, run.LogLine{}
	for line := range w.logLines(d.ID) {
		size += len(line.Message)
		last = line
	}
	if size > 8<<20 || size < 7<<20 || last.Level != "warn" || !strings.Contains(last.Message, "further lines are dropped") {
		t.Errorf("%d bytes, the last line is %+v", size, last)
	}
}

// TestDriverPanicFailsOnlyItsRun has a store that panics for one run.
func TestDriverPanicFailsOnlyItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(&panickingStore{Store: w.store.Leases})
	flow := w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"returns": 1}}, {"id": "b", "uses": "test.effect", "with": {"returns": 2}}]`)
	if d := w.finished(w.startRun(flow, `{"panic": true}`)); d.Status != run.Failed || d.Error.Code != run.CodeInternal {
		t.Errorf("%s: %+v", d.Status, d.Error)
	}
	if d := w.finished(w.startRun(flow, `{}`)); d.Status != run.Succeeded {
		t.Errorf("another run: %s: %+v", d.Status, d.Error)
	}
}

type panickingStore struct{ engine.Store }

func (p *panickingStore) Commit(ctx context.Context, lease run.Lease, of run.Run, d run.Decision) (run.Committed, error) {
	if strings.Contains(string(of.Trigger.Payload), "panic") && d.Finish == nil {
		panic("scripted")
	}
	return p.Store.Commit(ctx, lease, of, d)
}
