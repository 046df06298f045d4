package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/uid"
)

// BenchmarkFollow measures one poll of a follower, by the number of steps, and reading
// the whole run.
func BenchmarkFollow(b *testing.B) {
	s := newFollowWorld(b)
	for _, steps := range []int{10, 500, 50_000} {
		runID := longRun(b, s, steps)
		b.Run(fmt.Sprintf("one look at %d steps", steps), func(b *testing.B) {
			feed := must(s.service.Follow(b.Context(), s.actor, runID, ""))(b)
			for changes := must(feed.Next(b.Context()))(b); changes.More; changes = must(feed.Next(b.Context()))(b) {
			}
			for b.Loop() {
				must(feed.Next(b.Context()))(b)
			}
		})
		b.Run(fmt.Sprintf("all of %d steps", steps), func(b *testing.B) {
			for b.Loop() {
				feed := must(s.service.Follow(b.Context(), s.actor, runID, ""))(b)
				for changes := must(feed.Next(b.Context()))(b); changes.More; changes = must(feed.Next(b.Context()))(b) {
				}
			}
		})
	}
}

func must[T any](got T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
}

// longRun creates a run with the given number of steps, with some text in each.
func longRun(b *testing.B, s *followWorld, steps int) string {
	b.Helper()
	now := clock.Now()
	r := run.Run{
		ID: uid.New(uid.Run), WorkspaceID: s.workflow.WorkspaceID, WorkflowID: s.workflow.ID, WorkflowVersion: 1, Status: run.Running,
		Trigger: run.Trigger{Type: run.Manual, Payload: json.RawMessage(`{}`)}, StartedAt: now,
	}
	begun := must(event.New(event.RunStarted, event.Subject{WorkspaceID: r.WorkspaceID, WorkflowID: r.WorkflowID, RunID: r.ID}, now, nil))(b)
	must(s.store.Runs.StartRun(context.Background(), run.Start{Run: r, Revision: 1, Node: "node", WorkflowName: "w", Plan: auth.Pro, Event: begun}))(b)
	text := json.RawMessage(`{"text":"` + strings.Repeat("x", 200) + `"}`)
	for seq := 0; seq < steps; {
		d := run.Decision{Rev: seq + 1}
		for ; seq < steps && len(d.Steps) < 500; seq++ {
			d.Steps = append(d.Steps, run.Step{
				Path: fmt.Sprintf("each[%d].step", seq), Seq: seq + 1, Name: "A step", Type: "data.set", Status: run.StepSucceeded, Attempt: 1,
				Input: text, Output: text, StartedAt: now, AttemptAt: now, FinishedAt: &now,
			})
		}
		must(s.store.Leases.Commit(context.Background(), run.Lease{RunID: r.ID, Epoch: 1}, r, d))(b)
	}
	return r.ID
}
