package run_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		"an ended run waits for nothing": {detail: run.Detail{Run: run.Run{Status: run.Cancelled}, Steps: steps, Queued: true, HeldBack: true}},
		"a run that works does not wait": {detail: run.Detail{Steps: append(steps[:3:3], step("d", "http.request", run.StepRunning, nil))}},
		"a run that has just started":    {},
		"the step that wakes first":      {detail: run.Detail{Steps: steps}, want: &run.Waiting{Reason: "because of b", StepID: "b", Until: &soon}},
		"a place": {
			detail: run.Detail{Run: run.Run{ShareKey: "=Ada"}, Steps: steps, HeldBack: true},
			want:   &run.Waiting{Reason: `waits until another run of this workflow with the concurrency key "Ada" has ended`},
		},
		"a place without a key": {
			detail: run.Detail{Run: run.Run{ShareKey: "="}, HeldBack: true},
			want:   &run.Waiting{Reason: "waits until another run of this workflow has ended"},
		},
		"the queue": {
			detail: run.Detail{Steps: steps, Queued: true, Crashes: 1},
			want:   &run.Waiting{Reason: "waits in the queue: as many runs as may be are under way"},
		},
		"being alone": {
			detail: run.Detail{Queued: true, Crashes: 2},
			want:   &run.Waiting{Reason: "waits to be executed by itself, because the service has stopped abruptly 2 times while it was under way"},
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
