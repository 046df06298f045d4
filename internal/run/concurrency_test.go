package run_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// slots are the runs of a concurrency key.
type slots struct {
	admitted, queued int
	ancestors        map[string]run.Run
}

func (s slots) Admitted() (int, error) { return s.admitted, nil }
func (s slots) Queued() (int, error)   { return s.queued, nil }

func (s slots) Ancestor(runID string) (*run.Run, error) {
	if r, ok := s.ancestors[runID]; ok {
		return &r, nil
	}
	return nil, nil
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	full := auth.Free.Limits().QueuedRuns
	waitsFor := func(runID string) *run.Parent { return &run.Parent{RunID: runID, StepID: "call", Waits: true} }
	family := map[string]run.Run{
		"run_parent": {WorkflowID: "wf_other", Parent: waitsFor("run_top")},
		"run_top":    {WorkflowID: "wf_1", ConcurrencyKey: "=a"},
	}
	for name, test := range map[string]struct {
		on     workflow.OnLimit
		slots  slots
		parent *run.Parent
		want   run.Admission
		err    error
	}{
		"a slot is free":                       {on: workflow.Drop, slots: slots{admitted: 1}, want: run.Admission{Admitted: true}},
		"queued at the limit":                  {on: workflow.Queue, slots: slots{admitted: 2}},
		"rejected by a full queue":             {on: workflow.Queue, slots: slots{admitted: 2, queued: full}, err: run.ErrQueueFull},
		"dropped at the limit":                 {on: workflow.Drop, slots: slots{admitted: 2}, err: run.ErrAtLimit},
		"replaces the oldest":                  {on: workflow.CancelRunning, slots: slots{admitted: 2}, want: run.Admission{Admitted: true, CancelOldest: 1}},
		"replaces several after a lower limit": {on: workflow.CancelRunning, slots: slots{admitted: 5}, want: run.Admission{Admitted: true, CancelOldest: 4}},
		"never waits for a waiting ancestor":   {on: workflow.Queue, slots: slots{admitted: 2, ancestors: family}, parent: waitsFor("run_parent"), err: run.ErrAtLimit},
		"never cancels a waiting ancestor":     {on: workflow.CancelRunning, slots: slots{admitted: 2, ancestors: family}, parent: waitsFor("run_parent"), err: run.ErrAtLimit},
		"an ancestor was deleted":              {on: workflow.Queue, slots: slots{admitted: 2}, parent: waitsFor("run_parent")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := run.Start{
				Run: run.Run{WorkflowID: "wf_1", ConcurrencyKey: "=a", Parent: test.parent}, Plan: auth.Free,
				Concurrency: &workflow.ConcurrencyLimit{Limit: 2, OnLimit: test.on},
			}
			got, err := start.Admit(test.slots)
			if !errors.Is(err, test.err) || err != nil && test.err == nil {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
