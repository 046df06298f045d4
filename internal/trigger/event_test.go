package trigger_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

func eventTrigger(events, more string) string {
	return `[{"id": "e", "type": "event", "events": [` + events + `]` + more + `}]`
}

// startRun starts a run through the API.
func (w *testEnv) startRun(workflowID string) run.Started {
	w.t.Helper()
	started, err := w.runs.Start(w.t.Context(), w.actor, run.Request{WorkflowID: workflowID})
	w.must(err)
	return started
}

func (w *testEnv) cancel(runID string) {
	w.t.Helper()
	_, err := w.runs.Cancel(w.t.Context(), w.actor, runID)
	w.must(err)
}

// startedFor returns the events that started the runs of a workflow.
func (w *testEnv) startedFor(workflowID string) []string {
	w.t.Helper()
	var out []string
	for _, r := range w.startedRuns(workflowID) {
		var payload struct {
			Event event.Type
			Data  struct {
				RunID      string `json:"run_id"`
				WorkflowID string `json:"workflow_id"`
			}
		}
		w.must(json.Unmarshal(r.Trigger.Payload, &payload))
		out = append(out, fmt.Sprint(payload.Event, " ", payload.Data.WorkflowID, " ", payload.Data.RunID))
	}
	return out
}

func TestEventFilters(t *testing.T) {
	t.Parallel()
	const own, other, third = "wf_own", "wf_other", "wf_third"
	for _, tc := range []struct {
		spec       string
		kind       event.Type
		workflowID string
		want       bool
	}{
		{`{"events": ["run.failed"]}`, event.RunFailed, other, true},
		{`{"events": ["run.failed"]}`, event.RunSucceeded, other, false},
		{`{"events": ["run.failed"]}`, event.RunFailed, own, false},
		{`{"events": ["run.succeeded", "run.failed"]}`, event.RunFailed, other, true},
		{`{"events": ["run.failed"], "workflows": ["wf_other"]}`, event.RunFailed, other, true},
		{`{"events": ["run.failed"], "workflows": ["wf_other"]}`, event.RunFailed, third, false},
		{`{"events": ["run.failed"], "workflows": ["wf_other"]}`, event.RunFailed, own, false},
		{`{"events": ["run.failed"], "workflows": ["wf_own"]}`, event.RunFailed, own, true},
		{`{"events": ["workflow.paused"]}`, event.WorkflowPaused, other, true},
		{`{"events": ["connection.broken"]}`, event.ConnectionBroken, "", true},
		{`{"events": ["connection.broken"], "workflows": ["wf_1"]}`, event.ConnectionBroken, "", true},
		{`{"events": ["run.failed"]}`, event.ConnectionBroken, "", false},
	} {
		s, err := trigger.ParseEventFilter(own, "e", []byte(tc.spec))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Wants(event.Event{Type: tc.kind, WorkflowID: tc.workflowID}); got != tc.want {
			t.Errorf("%s, %s of %s: %t", tc.spec, tc.kind, tc.workflowID, got)
		}
	}
}

// Each event starts a run, with the event as its payload.
func TestEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		for range 3 { // nodes
			w.startNode()
		}
		source, other := w.workflow(workflow.Active, `[]`), w.workflow(workflow.Active, `[]`)
		all := w.workflow(workflow.Active, eventTrigger(`"run.cancelled", "workflow.paused"`, ""))
		one := w.workflow(workflow.Active, eventTrigger(`"run.started"`, `, "workflows": ["`+source.ID+`"]`))
		idle := w.workflow(workflow.Draft, eventTrigger(`"run.started"`, ""))

		first, second := w.startRun(source.ID), w.startRun(other.ID)
		w.cancel(first.ID)
		time.Sleep(time.Millisecond)
		w.cancel(second.ID)
		time.Sleep(time.Millisecond)
		w.setState(source.ID, workflow.Paused)
		time.Sleep(time.Second)

		wantEqual(t, "all", w.startedFor(all.ID), []string{
			"run.cancelled " + source.ID + " " + first.ID, "run.cancelled " + other.ID + " " + second.ID, "workflow.paused " + source.ID + " ",
		})
		wantEqual(t, "one", w.startedFor(one.ID), []string{"run.started " + source.ID + " " + first.ID})
		wantEqual(t, "a draft", w.startedFor(idle.ID), []string{})
		for i, depth := range []int{1, 1, 0} {
			r := w.startedRuns(all.ID)[i]
			wantEqual(t, "depth", r.Depth, depth)
			wantEqual(t, "trigger", r.Trigger.Type+" "+r.Trigger.ID, "event e")
		}
		stored := w.trigger(one.ID)
		wantEqual(t, "last run", stored.RunID, w.startedRuns(one.ID)[0].ID)
		wantEqual(t, "next", stored.NextAt, (*time.Time)(nil))
	})
}

// Events that happened while no node ran start runs after the next start, once.
func TestEventsSurviveRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		source, chain := w.workflow(workflow.Active, `[]`), w.workflow(workflow.Active, eventTrigger(`"run.started"`, ""))
		var want []string
		for range 40 {
			want = append(want, "run.started "+source.ID+" "+w.startRun(source.ID).ID)
			time.Sleep(time.Millisecond)
		}
		wantEqual(t, "before", len(w.startedRuns(chain.ID)), 0)
		for range 3 {
			w.startNode()
			time.Sleep(time.Second)
			w.stopNodes()
		}
		got := map[string]int{}
		for _, eventID := range w.startedFor(chain.ID) {
			got[eventID]++
		}
		for _, wanted := range want {
			wantEqual(t, wanted, got[wanted], 1)
		}
		wantEqual(t, "runs", len(w.startedRuns(chain.ID)), len(want))
	})
}

// Workflows that start each other are stopped at a depth of ten.
func TestEventLoopIsStopped(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]func(w *testEnv) (start string, others []string){
		"itself": func(w *testEnv) (string, []string) {
			made := w.workflow(workflow.Active, `[]`)
			w.update(made.ID, w.patch(eventTrigger(`"run.started"`, `, "workflows": ["`+made.ID+`"]`)))
			return made.ID, []string{made.ID}
		},
		"each other": func(w *testEnv) (string, []string) {
			a, b := w.workflow(workflow.Active, eventTrigger(`"run.started"`, "")), w.workflow(workflow.Active, eventTrigger(`"run.started"`, ""))
			return a.ID, []string{a.ID, b.ID}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newTestEnv(t)
				w.startNode()
				first, all := link(w)
				w.startRun(first)
				time.Sleep(time.Minute)
				runs, cut := 0, 0
				for _, id := range all {
					runs += len(w.startedRuns(id))
					if idle := w.trigger(id).NotFired; idle != nil && idle.Code == "chain_depth_exceeded" {
						cut++
					}
				}
				wantEqual(t, "runs", runs, action.MaxDepth+1)
				wantEqual(t, "triggers that say why", cut, 1)
			})
		})
	}
}

func TestEventNotFired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		source := w.workflow(workflow.Active, `[]`)
		chain := w.workflow(workflow.Active, eventTrigger(`"run.started"`, `, "workflows": ["`+source.ID+`"]`), `{"concurrency": {"on_limit": "drop"}}`)
		late := w.workflow(workflow.Active, eventTrigger(`"run.started"`, `, "workflows": ["`+source.ID+`"]`))
		says := func(id, code string) {
			t.Helper()
			if idle := w.trigger(id).NotFired; idle == nil || idle.Code != code {
				t.Errorf("it says %+v, want %s", idle, code)
			}
		}

		w.startRun(source.ID)
		w.setState(late.ID, workflow.Paused)
		w.startNode()
		time.Sleep(time.Second)
		wantEqual(t, "runs", len(w.startedRuns(chain.ID)), 1)
		says(late.ID, trigger.CodeNotActive)
		w.setState(late.ID, workflow.Active)
		time.Sleep(time.Minute)
		wantEqual(t, "runs of one that was paused", len(w.startedRuns(late.ID)), 0)

		w.startRun(source.ID)
		time.Sleep(time.Second)
		wantEqual(t, "runs", len(w.startedRuns(chain.ID)), 1)
		says(chain.ID, "concurrency_limit")

		// The event waits while the queue is full.
		w.startRun(source.ID)
		w.queueFull.Store(true)
		time.Sleep(10 * time.Minute)
		w.queueFull.Store(false)
		time.Sleep(10 * time.Minute)
		wantEqual(t, "runs", len(w.startedRuns(late.ID)), 2)
	})
}

// Pending events of a removed or replaced trigger are deleted.
func TestEditEventTrigger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		source := w.workflow(workflow.Active, `[]`)
		for _, edit := range []string{`[]`, `[{"id": "e", "type": "schedule", "every": "1d"}]`, eventTrigger(`"run.failed"`, "")} {
			chain := w.workflow(workflow.Active, eventTrigger(`"run.started"`, ""))
			w.startRun(source.ID)
			w.update(chain.ID, w.patch(edit))
			w.startNode()
			time.Sleep(time.Second)
			w.stopNodes()
			want := 0
			if edit == eventTrigger(`"run.failed"`, "") {
				want = 1 // it was due when it happened
			}
			wantEqual(t, "runs after "+edit, len(w.startedRuns(chain.ID)), want)
		}
	})
}
