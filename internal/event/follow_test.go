package event_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/pubsub"
)

// A feed delivers the new events of its workspace, and no others.
func TestFollow(t *testing.T) {
	t.Parallel()
	c := newEnv(t)
	own, foreign := c.workflow(c.Admin.Workspace.ID), c.workflow(c.Workspace(t, auth.Free).Workspace.ID)
	c.record(&own, "run_1", event.RunStarted) // before
	feed := c.follow(own.WorkspaceID, event.Filter{}, "")
	if notified(feed) || feed.Gap != nil || feed.Position() != 1 {
		t.Errorf("the feed is notified, or has the gap %v or the position %d", feed.Gap, feed.Position())
	}
	c.record(&foreign, "run_9", event.RunStarted)
	if notified(feed) {
		t.Error("the feed is notified of another workspace")
	}
	if got := c.next(feed); got != "[]" {
		t.Errorf("delivered: %s", got)
	}
	c.record(&own, "run_1", event.RunSucceeded)
	c.record(&own, "", event.WorkflowPaused)
	if !notified(feed) || notified(feed) {
		t.Error("the feed is not notified exactly once")
	}
	events, more, err := feed.Next(t.Context())
	if err != nil || more || typesOf(events) != "[run.succeeded workflow.paused]" {
		t.Fatalf("delivered: %s, more: %t, %v", typesOf(events), more, err)
	}
	if events[0].Seq != 3 || events[1].Seq != 4 || feed.Position() != 4 {
		t.Errorf("the sequence numbers are %d and %d, the position is %d", events[0].Seq, events[1].Seq, feed.Position())
	}
	if got := c.next(feed); got != "[]" {
		t.Errorf("delivered twice: %s", got)
	}
}

// A feed can resume after any sequence number.
func TestFollowResumes(t *testing.T) {
	t.Parallel()
	c := newEnv(t)
	w := c.workflow(c.Admin.Workspace.ID)
	for _, kind := range event.Types() {
		c.record(&w, "run_1", kind)
	}
	all := len(event.Types())
	for _, n := range []int{0, 1, all - 1, all} {
		seen := strconv.Itoa(n)
		feed := c.follow(w.WorkspaceID, event.Filter{}, seen)
		want := fmt.Sprint(event.Types()[n:])
		if got := c.next(feed); got != want || feed.Gap != nil {
			t.Errorf("after %s: delivered %s, gap %v; want %s", seen, got, feed.Gap, want)
		}
		if feed.Position() != int64(all) {
			t.Errorf("after %s the position is %d", seen, feed.Position())
		}
	}
}

func TestFollowRejectsInvalidID(t *testing.T) {
	t.Parallel()
	c := newEnv(t)
	for _, id := range []string{"x", "-1", "007", "+1", "1.5", " 1", "1 ", "99999999999999999999", "0x1"} {
		_, err := c.events.Follow(t.Context(), c.Admin.Workspace.ID, event.Filter{}, id)
		if !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// Events that do not match the filter advance the position.
func TestFollowWithFilter(t *testing.T) {
	t.Parallel()
	c := newEnv(t)
	one, two := c.workflow(c.Admin.Workspace.ID), c.workflow(c.Admin.Workspace.ID)
	for _, tc := range []struct {
		filter event.Filter
		want   string
	}{
		{event.Filter{}, "[run.started run.started run.failed run.succeeded]"},
		{event.Filter{Types: []event.Type{event.RunFailed}}, "[run.failed]"},
		{event.Filter{Types: []event.Type{event.RunSucceeded, event.RunFailed}}, "[run.failed run.succeeded]"},
		{event.Filter{WorkflowID: two.ID}, "[run.started run.succeeded]"},
		{event.Filter{WorkflowID: two.ID, Types: []event.Type{event.RunStarted}}, "[run.started]"},
		{event.Filter{WorkflowID: two.ID, Types: []event.Type{event.RunFailed}}, "[]"},
	} {
		feed := c.follow(one.WorkspaceID, tc.filter, "")
		start := feed.Position()
		c.record(&one, "run_1", event.RunStarted)
		c.record(&two, "run_2", event.RunStarted)
		c.record(&one, "run_1", event.RunFailed)
		c.record(&two, "run_2", event.RunSucceeded)
		if got := c.next(feed); got != tc.want {
			t.Errorf("%+v: delivered: %s, want %s", tc.filter, got, tc.want)
		}
		if feed.Position() != start+4 {
			t.Errorf("%+v: the position is %d, want %d", tc.filter, feed.Position(), start+4)
		}
	}
}

// Events are read in batches of a hundred.
func TestFollowInBatches(t *testing.T) {
	t.Parallel()
	c := newEnv(t)
	w := c.workflow(c.Admin.Workspace.ID)
	feed := c.follow(w.WorkspaceID, event.Filter{}, "")
	kinds := make([]event.Type, 250)
	for i := range kinds {
		kinds[i] = event.RunStarted
	}
	c.record(&w, "run_1", kinds...)
	var seqs []int64
	for _, want := range []struct {
		n    int
		more bool
	}{{100, true}, {100, true}, {50, false}, {0, false}} {
		events, more, err := feed.Next(t.Context())
		if err != nil || len(events) != want.n || more != want.more {
			t.Fatalf("%d events, more: %t, %v; want %+v", len(events), more, err, want)
		}
		for _, e := range events {
			seqs = append(seqs, e.Seq)
		}
	}
	for i, seq := range seqs {
		if seq != int64(i)+1 {
			t.Fatalf("event %d has the sequence number %d", i+1, seq)
		}
	}
}

// If events have expired, the feed reports the gap and continues with the oldest
// event that is left.
func TestFollowWithGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newEnv(t)
		w := c.workflow(c.Admin.Workspace.ID)
		for range 4 {
			c.record(&w, "run_1", event.RunStarted)
		}
		time.Sleep(2 * time.Hour)
		for range 2 {
			c.record(&w, "run_1", event.RunSucceeded)
		}
		time.Sleep(event.Retention - time.Hour) // the first four have expired
		check := func(stage string, cases map[string]struct {
			gap       *event.Gap
			at        int64
			delivered string
		}) {
			t.Helper()
			for seen, want := range cases {
				feed := c.follow(w.WorkspaceID, event.Filter{}, seen)
				if diff := cmp.Diff(want.gap, feed.Gap); diff != "" || feed.Position() != want.at {
					t.Errorf("%s, after %q: the position is %d, want %d, the gap (-want +got):\n%s", stage, seen, feed.Position(), want.at, diff)
				}
				if got := c.next(feed); got != want.delivered {
					t.Errorf("%s, after %q: delivered: %s, want %s", stage, seen, got, want.delivered)
				}
			}
		}
		type wanted = struct {
			gap       *event.Gap
			at        int64
			delivered string
		}
		const both = "[run.succeeded run.succeeded]"
		check("some have expired", map[string]wanted{
			"":   {nil, 6, "[]"},
			"0":  {&event.Gap{After: 0, Through: 4}, 4, both},
			"3":  {&event.Gap{After: 3, Through: 4}, 4, both},
			"4":  {nil, 4, both},
			"5":  {nil, 5, "[run.succeeded]"},
			"6":  {nil, 6, "[]"},
			"99": {&event.Gap{After: 99, Through: 6}, 6, "[]"},
		})
		// Now the expired events are deleted.
		if _, err := c.Events.PurgeOld(t.Context(), time.Now().Add(-event.Retention), 100); err != nil {
			t.Fatal(err)
		}
		check("they are deleted", map[string]wanted{
			"3": {&event.Gap{After: 3, Through: 4}, 4, both},
			"4": {nil, 4, both},
		})
		time.Sleep(event.Retention)
		check("all have expired", map[string]wanted{
			"":  {nil, 6, "[]"},
			"5": {&event.Gap{After: 5, Through: 6}, 6, "[]"},
			"6": {nil, 6, "[]"},
		})
	})
}

// Events between the start of a feed and its first read are not lost.
func TestFollowMissesNoEvents(t *testing.T) {
	t.Parallel()
	c := newEnv(t)
	w := c.workflow(c.Admin.Workspace.ID)
	feed := c.follow(w.WorkspaceID, event.Filter{}, "")
	c.record(&w, "run_1", event.RunStarted)
	if got := c.next(feed); got != "[run.started]" || !notified(feed) {
		t.Errorf("delivered: %s", got)
	}
	// The notification may be for events that were already read.
	if got := c.next(feed); got != "[]" {
		t.Errorf("delivered: %s", got)
	}
}

// The subscription of a feed ends with its context, even if Follow failed.
func TestFeedEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newEnv(t)
		ctx, stop := context.WithCancel(t.Context())
		for _, seen := range []string{"", "0", "nonsense"} {
			_, _ = c.events.Follow(ctx, c.Admin.Workspace.ID, event.Filter{}, seen)
		}
		if got := c.written.Subscribers(); got != 3 {
			t.Errorf("%d subscriptions", got)
		}
		stop()
		synctest.Wait()
		if got := c.written.Subscribers(); got != 0 {
			t.Errorf("%d subscriptions are left", got)
		}
	})
}

// broken is a store that cannot be read.
type broken struct{ event.Store }

var errBroken = errors.New("the disk is gone")

func (broken) EventExtent(context.Context, string, time.Time) (event.Extent, error) {
	return event.Extent{Newest: 3}, errBroken
}

func (broken) EventsAfter(context.Context, string, event.Filter, int64, int) ([]event.Stored, int64, error) {
	return nil, 99, errBroken
}

// A failed read does not change the position.
func TestFollowWithFailingStore(t *testing.T) {
	t.Parallel()
	if feed, err := event.NewService(broken{}, pubsub.NewBroker()).Follow(t.Context(), "ws_1", event.Filter{}, ""); !errors.Is(err, errBroken) || feed != nil {
		t.Errorf("the feed is %v, %v", feed, err)
	}
	c := newEnv(t)
	feed, err := event.NewService(halfBroken{c.Events}, c.written).Follow(t.Context(), c.Admin.Workspace.ID, event.Filter{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := feed.Next(t.Context()); !errors.Is(err, errBroken) || feed.Position() != 0 {
		t.Errorf("the position is %d, %v", feed.Position(), err)
	}
}

// halfBroken is a store whose extent can be read, but not its events.
type halfBroken struct{ event.Store }

func (halfBroken) EventsAfter(context.Context, string, event.Filter, int64, int) ([]event.Stored, int64, error) {
	return nil, 99, errBroken
}
