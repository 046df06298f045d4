package event_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

// Events are listed as written, newest first.
func TestList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newEnv(t)
		other := c.Workspace(t, auth.Free).Workspace.ID
		own, foreign := c.workflow(c.Admin.Workspace.ID), c.workflow(other)
		made := c.record(&own, "", event.WorkflowActivated)
		c.record(&foreign, "run_9", event.RunStarted)
		made = append(made, c.record(&own, "run_1", event.RunStarted, event.RunSucceeded)...)
		slices.Reverse(made)
		listed := c.list(c.Admin.Workspace.ID, event.Query{}, 100)
		var events []event.Event
		for i, stored := range listed {
			events = append(events, stored.Event)
			if i > 0 && stored.Seq >= listed[i-1].Seq {
				t.Errorf("%d is listed after %d", stored.Seq, listed[i-1].Seq)
			}
		}
		if diff := cmp.Diff(made, events); diff != "" {
			t.Errorf("events (-written +listed):\n%s", diff)
		}
		if got := typesOf(c.list(other, event.Query{}, 100)); got != "[run.started]" {
			t.Errorf("the other workspace has %s", got)
		}
	})
}

// Events are listed for seven days, even if the query starts earlier.
func TestOldEventsAreNotListed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newEnv(t)
		w := c.workflow(c.Admin.Workspace.ID)
		start := time.Now()
		c.record(&w, "run_1", event.RunStarted)
		time.Sleep(time.Hour)
		c.record(&w, "run_1", event.RunFailed)
		list := func(want event.Query) string { return typesOf(c.list(c.Admin.Workspace.ID, want, 10)) }
		time.Sleep(event.Retention - time.Hour)
		if got := list(event.Query{}); got != "[run.failed run.started]" {
			t.Errorf("after seven days: %s", got)
		}
		if got := list(event.Query{After: start.Add(time.Microsecond)}); got != "[run.failed]" {
			t.Errorf("after the first event: %s", got)
		}
		time.Sleep(time.Microsecond)
		for _, want := range []event.Query{{}, {After: start}, {After: start.Add(-time.Hour)}} {
			if got := list(want); got != "[run.failed]" {
				t.Errorf("just after seven days: %s", got)
			}
		}
		if got := list(event.Query{Before: new(start.Add(time.Minute))}); got != "[]" {
			t.Errorf("before the expiry: %s", got)
		}
	})
}

// For any query and page size, the list contains exactly the matching events.
func TestListProperty(t *testing.T) {
	t.Parallel()
	c := newEnv(t)
	own, foreign := c.Admin.Workspace.ID, c.Workspace(t, auth.Free).Workspace.ID
	flows := []*workflow.Workflow{new(c.workflow(own)), new(c.workflow(own)), new(c.workflow(foreign))}
	runs := []string{"", "run_1", "run_2"}
	var made []event.Event
	start := clock.Now().Add(-11 * time.Hour)
	for i := range 60 {
		w := flows[i%7%3]
		if events := c.recordAt(start.Add(time.Duration(i)*10*time.Minute), w, runs[i%5%3], event.Types()[i%6]); w.WorkspaceID == own {
			made = append(made, events...)
		}
	}
	slices.Reverse(made)
	moment := rapid.Custom(func(t *rapid.T) time.Time {
		return start.Add(time.Duration(rapid.IntRange(-1, 61).Draw(t, "ten minutes")) * 10 * time.Minute)
	})
	lane.Check(t, func(rt *rapid.T) {
		want := event.Query{
			Filter: event.Filter{Types: rapid.SliceOfNDistinct(rapid.SampledFrom(event.Types()), 0, 3, rapid.ID).Draw(rt, "types")},
			RunID:  rapid.SampledFrom(append(runs, "run_none")).Draw(rt, "run"),
		}
		if i := rapid.IntRange(-1, 2).Draw(rt, "workflow"); i >= 0 {
			want.WorkflowID = flows[i].ID
		}
		if rapid.Bool().Draw(rt, "after") {
			want.After = moment.Draw(rt, "after")
		}
		if rapid.Bool().Draw(rt, "before") {
			want.Before = new(moment.Draw(rt, "before"))
		}
		var ids, got []string
		for _, e := range made {
			if want.Matches(e) {
				ids = append(ids, e.ID)
			}
		}
		for _, e := range c.list(own, want, rapid.IntRange(1, 20).Draw(rt, "limit")) {
			got = append(got, e.ID)
		}
		if fmt.Sprint(got) != fmt.Sprint(ids) {
			rt.Fatalf("%+v lists %v, want %v", want, got, ids)
		}
	})
}
