package run_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/run"
)

func TestWaitingFor(t *testing.T) {
	t.Parallel()
	soon, late := time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC), time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	step := func(path, kind string, status run.StepStatus, until *time.Time) run.Step {
		return run.Step{Path: path, Type: kind, Status: status, WakeAt: until, Reason: "because of " + path}
	}
	steps := []run.Step{step("a", "flow.wait", run.StepWaiting, &late), step("b", "flow.wait", run.StepWaiting, &soon), step("c", run.Foreach, run.StepRunning, nil)}
	for name, tc := range map[string]struct {
		detail run.Detail
		want   *run.Waiting
	}{
		"a finished run":               {detail: run.Detail{Run: run.Run{Status: run.Cancelled}, Steps: steps, Queued: true, HeldBack: true}},
		"a run with a running step":    {detail: run.Detail{Steps: append(steps[:3:3], step("d", "http.request", run.StepRunning, nil))}},
		"a run without steps":          {},
		"the step that wakes up first": {detail: run.Detail{Steps: steps}, want: &run.Waiting{Kind: run.ForTime, Reason: "because of b", StepID: "b", Until: &soon}},
		"the concurrency limit for a key": {
			detail: run.Detail{Run: run.Run{ConcurrencyKey: "=Ada"}, Steps: steps, HeldBack: true},
			want:   &run.Waiting{Kind: run.ForSlot, Reason: `queued: the concurrency limit of the workflow for key "Ada" is reached`},
		},
		"the concurrency limit without a key": {
			detail: run.Detail{Run: run.Run{ConcurrencyKey: "="}, HeldBack: true},
			want:   &run.Waiting{Kind: run.ForSlot, Reason: "queued: the concurrency limit of the workflow is reached"},
		},
		"queued": {
			detail: run.Detail{Steps: steps, Queued: true, Crashes: 1},
			want:   &run.Waiting{Kind: run.ForSlot, Reason: "queued: the concurrency limit is reached"},
		},
		"isolated after crashes": {
			detail: run.Detail{Queued: true, Crashes: 2},
			want:   &run.Waiting{Kind: run.ForSlot, Reason: "queued: executed in isolation because the service crashed 2 times while it was running"},
		},
	} {
		if tc.detail.Status == "" {
			tc.detail.Status = run.Running
		}
		if diff := cmp.Diff(tc.want, tc.detail.WaitingFor()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWaitKindOfStep(t *testing.T) {
	t.Parallel()
	failure := &run.Failure{Code: "http_error"}
	for name, tc := range map[string]struct {
		step       run.Step
		kind       run.WaitKind
		connection string
	}{
		"a time":       {step: run.Step{}, kind: run.ForTime},
		"an answer":    {step: run.Step{Awaits: action.AwaitsAnswer}, kind: run.ForAnswer},
		"another run":  {step: run.Step{Awaits: action.AwaitsRun}, kind: run.ForRun},
		"a connection": {step: run.Step{Awaits: action.AwaitsConnection("team-slack")}, kind: run.ForConnection, connection: "team-slack"},
		"a retry":      {step: run.Step{Error: failure}, kind: run.ForRetry},
		"a retry of a step that has waited for a connection": {
			step: run.Step{Error: failure, Awaits: action.AwaitsConnection("team-slack")}, kind: run.ForRetry,
		},
	} {
		tc.step.Status = run.StepWaiting
		got := run.WaitFacts{Step: &tc.step}.WaitingFor()
		if got.Kind != tc.kind || got.Connection != tc.connection {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
