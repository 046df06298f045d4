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

func on(events, more string) string {
	return `[{"id": "e", "type": "event", "events": [` + events + `]` + more + `}]`
}

// begin starts a run by a request.
func (w *world) begin(workflowID string) run.Started {
	w.t.Helper()
	started, err := w.runs.Start(w.t.Context(), w.actor, run.Request{WorkflowID: workflowID})
	w.must(err)
	return started
}

func (w *world) cancel(runID string) {
	w.t.Helper()
	_, err := w.runs.Cancel(w.t.Context(), w.actor, runID)
	w.must(err)
}

// heard are the events that the runs of a workflow were started for.
func (w *world) heard(workflowID string) []string {
	w.t.Helper()
	var out []string
	for _, r := range w.started(workflowID) {
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

func TestSubscriptions(t *testing.T) {
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
	} {
		s, err := trigger.ParseSubscription(own, "e", []byte(tc.spec))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Wants(event.Event{Type: tc.kind, WorkflowID: tc.workflowID}); got != tc.want {
			t.Errorf("%s, %s of %s: %t", tc.spec, tc.kind, tc.workflowID, got)
		}
	}
}

// A run for each event, with the event as its payload.
func TestEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 3 { // processes
			w.start()
		}
		source, other := w.workflow(workflow.Active, `[]`), w.workflow(workflow.Active, `[]`)
		all := w.workflow(workflow.Active, on(`"run.cancelled", "workflow.paused"`, ""))
		one := w.workflow(workflow.Active, on(`"run.started"`, `, "workflows": ["`+source.ID+`"]`))
		idle := w.workflow(workflow.Draft, on(`"run.started"`, ""))

		first, second := w.begin(source.ID), w.begin(other.ID)
		w.cancel(first.ID)
		time.Sleep(time.Millisecond)
		w.cancel(second.ID)
		time.Sleep(time.Millisecond)
		w.setState(source.ID, workflow.Paused)
		time.Sleep(time.Second)

		same(t, "all", w.heard(all.ID), []string{
			"run.cancelled " + source.ID + " " + first.ID, "run.cancelled " + other.ID + " " + second.ID, "workflow.paused " + source.ID + " ",
		})
		same(t, "one", w.heard(one.ID), []string{"run.started " + source.ID + " " + first.ID})
		same(t, "a draft", w.heard(idle.ID), []string{})
		for i, depth := range []int{1, 1, 0} {
			r := w.started(all.ID)[i]
			same(t, "depth", r.Depth, depth)
			same(t, "trigger", r.Trigger.Type+" "+r.Trigger.ID, "event e")
		}
		kept := w.trigger(one.ID)
		same(t, "last run", kept.RunID, w.started(one.ID)[0].ID)
		same(t, "next", kept.NextAt, (*time.Time)(nil))
	})
}

// What happened while nothing ran is made up for after the start, once.
func TestEventsSurviveARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		source, chain := w.workflow(workflow.Active, `[]`), w.workflow(workflow.Active, on(`"run.started"`, ""))
		var want []string
		for range 40 {
			want = append(want, "run.started "+source.ID+" "+w.begin(source.ID).ID)
			time.Sleep(time.Millisecond)
		}
		same(t, "before", len(w.started(chain.ID)), 0)
		for range 3 {
			w.start()
			time.Sleep(time.Second)
			w.halt()
		}
		got := map[string]int{}
		for _, heard := range w.heard(chain.ID) {
			got[heard]++
		}
		for _, wanted := range want {
			same(t, wanted, got[wanted], 1)
		}
		same(t, "runs", len(w.started(chain.ID)), len(want))
	})
}

// Workflows that start one another are stopped when ten runs stand above.
func TestCirclesAreCut(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]func(w *world) (start string, others []string){
		"itself": func(w *world) (string, []string) {
			made := w.workflow(workflow.Active, `[]`)
			w.update(made.ID, w.patch(on(`"run.started"`, `, "workflows": ["`+made.ID+`"]`)))
			return made.ID, []string{made.ID}
		},
		"each other": func(w *world) (string, []string) {
			a, b := w.workflow(workflow.Active, on(`"run.started"`, "")), w.workflow(workflow.Active, on(`"run.started"`, ""))
			return a.ID, []string{a.ID, b.ID}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start()
				first, all := link(w)
				w.begin(first)
				time.Sleep(time.Minute)
				runs, cut := 0, 0
				for _, id := range all {
					runs += len(w.started(id))
					if idle := w.trigger(id).Idle; idle != nil && idle.Code == "chain_depth_exceeded" {
						cut++
					}
				}
				same(t, "runs", runs, action.MaxDepth+1)
				same(t, "triggers that say why", cut, 1)
			})
		})
	}
}

func TestAnEventThatStartsNothingSaysWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		source := w.workflow(workflow.Active, `[]`)
		chain := w.workflow(workflow.Active, on(`"run.started"`, `, "workflows": ["`+source.ID+`"]`), `{"concurrency": {"on_limit": "drop"}}`)
		late := w.workflow(workflow.Active, on(`"run.started"`, `, "workflows": ["`+source.ID+`"]`))
		says := func(id, code string) {
			t.Helper()
			if idle := w.trigger(id).Idle; idle == nil || idle.Code != code {
				t.Errorf("it says %+v, want %s", idle, code)
			}
		}

		w.begin(source.ID)
		w.setState(late.ID, workflow.Paused)
		w.start()
		time.Sleep(time.Second)
		same(t, "runs", len(w.started(chain.ID)), 1)
		says(late.ID, trigger.CodeNotActive)
		w.setState(late.ID, workflow.Active)
		time.Sleep(time.Minute)
		same(t, "runs of one that was paused", len(w.started(late.ID)), 0)

		w.begin(source.ID)
		time.Sleep(time.Second)
		same(t, "runs", len(w.started(chain.ID)), 1)
		says(chain.ID, "concurrency_limit")

		// A full queue is waited for.
		w.begin(source.ID)
		w.full.Store(true)
		time.Sleep(10 * time.Minute)
		w.full.Store(false)
		time.Sleep(10 * time.Minute)
		same(t, "runs", len(w.started(late.ID)), 2)
	})
}

// Occasions of a trigger that is removed or becomes another are gone with it.
func TestEditsOfAnEventTrigger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		source := w.workflow(workflow.Active, `[]`)
		for _, edit := range []string{`[]`, `[{"id": "e", "type": "schedule", "every": "1d"}]`, on(`"run.failed"`, "")} {
			chain := w.workflow(workflow.Active, on(`"run.started"`, ""))
			w.begin(source.ID)
			w.update(chain.ID, w.patch(edit))
			w.start()
			time.Sleep(time.Second)
			w.halt()
			want := 0
			if edit == on(`"run.failed"`, "") {
				want = 1 // it was due when it happened
			}
			same(t, "runs after "+edit, len(w.started(chain.ID)), want)
		}
	})
}
