package local_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/dispatch/local"
	"github.com/stepmill/stepmill/internal/run"
)

// slots is the number of runs that an engine executes at the same time.
const slots = 256

// rows is a store of waiting runs.
type rows struct {
	mu      sync.Mutex
	waiting []run.Wake
	orphans []run.Wake
}

func (r *rows) RecordCrash(context.Context, string) error { return nil }

func (r *rows) Due(_ context.Context, now time.Time, except []string, limit int) ([]run.Wake, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var due []run.Wake
	for _, w := range r.waiting {
		if !w.At.After(now) && len(due) < limit && !slices.Contains(except, w.WorkspaceID) {
			due = append(due, w)
		}
	}
	return due, nil
}

func (r *rows) NextDue(_ context.Context, after time.Time) (*time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var next *time.Time
	for _, w := range r.waiting {
		if w.At.After(after) && (next == nil || w.At.Before(*next)) {
			next = &w.At
		}
	}
	return next, nil
}

func (r *rows) Orphans(_ context.Context, _, after string, limit int) ([]run.Wake, error) {
	var found []run.Wake
	for _, w := range r.orphans {
		if w.RunID > after && len(found) < limit {
			found = append(found, w)
		}
	}
	return found, nil
}

func (r *rows) add(w run.Wake) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, w)
}

// taken removes a run that is executed.
func (r *rows) taken(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = slices.DeleteFunc(r.waiting, func(w run.Wake) bool { return w.RunID == id })
}

func newDispatcher(store local.Store) *local.Dispatcher {
	return local.New(store, "node_me", slots, slog.New(slog.DiscardHandler))
}

func next(t *testing.T, d *local.Dispatcher) run.Wake {
	t.Helper()
	w, err := d.Next(t.Context())
	d.Done(w)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestQueueIsFairBetweenWorkspaces(t *testing.T) {
	t.Parallel()
	d := newDispatcher(&rows{})
	for i := range 1000 {
		d.Wake(run.Wake{RunID: fmt.Sprintf("a%d", i), WorkspaceID: "ws_a"})
	}
	d.Wake(run.Wake{RunID: "b", WorkspaceID: "ws_b"})
	first, second := next(t, d), next(t, d)
	if first.RunID != "a0" || second.RunID != "b" {
		t.Fatalf("got %s, then %s", first.RunID, second.RunID)
	}
	for i := 1; i < 1000; i++ {
		if w := next(t, d); w.RunID != fmt.Sprintf("a%d", i) {
			t.Fatalf("run %d is %s", i, w.RunID)
		}
	}
}

// One workspace has more hanging runs than there are slots. If it shares them with
// others, it leaves an eighth free, so the run of another starts at once.
func TestHangingRunsLeaveReserveToOtherWorkspaces(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		shared bool
		want   int
	}{{false, slots}, {true, slots * 7 / 8}} {
		d := newDispatcher(&rows{})
		if tc.shared {
			d.Share()
		}
		for i := range 300 {
			d.Wake(run.Wake{RunID: fmt.Sprint("hangs", i), WorkspaceID: "ws_a", Plan: auth.Enterprise})
		}
		var last run.Wake
		taken := 0
		for ; taken < slots; taken++ {
			w, err := d.Next(ended)
			if err != nil {
				break
			}
			last = w
		}
		if taken != tc.want {
			t.Errorf("shared %v: %d runs of one workspace have a slot, want %d", tc.shared, taken, tc.want)
		}
		if !tc.shared {
			continue
		}
		d.Wake(run.Wake{RunID: "quick", WorkspaceID: "ws_b", Plan: auth.Free})
		if w, err := d.Next(ended); err != nil || w.RunID != "quick" {
			t.Errorf("the run of another workspace does not start: %q, %v", w.RunID, err)
		}
		// A slot that becomes free goes to the next run that waits.
		d.Done(last)
		if w, err := d.Next(ended); err != nil || w.WorkspaceID != "ws_a" {
			t.Errorf("after a run has ended, the next does not start: %q, %v", w.RunID, err)
		}
	}
}

// Small numbers of slots have a reserve too, and every workspace can use a slot.
func TestReserveOfFewSlots(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for slots, want := range map[int]int{1: 1, 8: 1, 9: 1, 16: 8, 64: 56, 72: 63} {
		d := local.New(&rows{}, "node_me", slots, slog.New(slog.DiscardHandler))
		d.Share()
		for i := range slots {
			d.Wake(run.Wake{RunID: fmt.Sprint(i), WorkspaceID: "ws", Plan: auth.Enterprise})
		}
		taken := 0
		for taken < slots {
			if _, err := d.Next(ended); err != nil {
				break
			}
			taken++
		}
		if taken != want {
			t.Errorf("one workspace uses %d of %d slots, want %d", taken, slots, want)
		}
	}
}

func TestRunIsQueuedOnce(t *testing.T) {
	t.Parallel()
	d := newDispatcher(&rows{})
	for range 3 {
		d.Wake(run.Wake{RunID: "a", WorkspaceID: "ws"})
	}
	d.Wake(run.Wake{RunID: "b", WorkspaceID: "ws"})
	if first, second := next(t, d), next(t, d); first.RunID != "a" || second.RunID != "b" {
		t.Fatalf("got %s, then %s", first.RunID, second.RunID)
	}
	d.Wake(run.Wake{RunID: "a", WorkspaceID: "ws"})
	if w := next(t, d); w.RunID != "a" {
		t.Fatal("a run that was executed cannot be queued again")
	}
}

func TestLatestWakeUpWins(t *testing.T) {
	t.Parallel()
	d := newDispatcher(&rows{})
	for _, epoch := range []int64{3, 5, 4} {
		d.Wake(run.Wake{RunID: "a", WorkspaceID: "ws", Epoch: epoch})
	}
	if w := next(t, d); w.Epoch != 5 {
		t.Fatalf("epoch %d", w.Epoch)
	}
}

func TestNextReturnsWhenContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newDispatcher(&rows{}).Next(ctx); err == nil {
		t.Fatal("no error")
	}
}

func TestRecoverQueuesOrphans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &rows{}
		for i := range 2500 {
			store.orphans = append(store.orphans, run.Wake{RunID: fmt.Sprintf("run_%05d", i), WorkspaceID: "ws"})
		}
		d := newDispatcher(store)
		if err := d.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() { _ = d.Run(t.Context()) }()
		for i := range 2500 {
			if w := next(t, d); w.RunID != fmt.Sprintf("run_%05d", i) {
				t.Fatalf("run %d is %s", i, w.RunID)
			}
		}
		if n := d.Stats().Resumed; n != 2500 {
			t.Errorf("%d runs were resumed, want 2500", n)
		}
	})
}

// TestRunsWakeWhenDue adds waits before and while the dispatcher runs, in any order.
// Each run wakes at its time, not before, and none is lost.
func TestRunsWakeWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &rows{}
		d := newDispatcher(store)
		begun := time.Now()
		const count = 3000
		add := func(i int) {
			w := run.Wake{RunID: fmt.Sprint(i), WorkspaceID: fmt.Sprint(i % 7), At: begun.Add(time.Duration(1+i*7919%5000) * time.Millisecond * 20)}
			store.add(w)
			d.Wake(w)
		}
		for i := range count / 2 {
			add(i)
		}
		go func() { _ = d.Run(t.Context()) }()
		go func() {
			for i := count / 2; i < count; i++ {
				add(i)
				time.Sleep(time.Millisecond)
			}
		}()
		for range count {
			w := next(t, d)
			store.taken(w.RunID)
			if now := time.Now(); now.Before(w.At) {
				t.Fatalf("%s woke %s early", w.RunID, w.At.Sub(now))
			} else if late := now.Sub(w.At); late > 3*time.Second {
				t.Fatalf("%s woke %s late", w.RunID, late)
			}
		}
	})
}

func TestDueRunIsQueuedAgainIfNotExecuted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &rows{}
		store.add(run.Wake{RunID: "a", WorkspaceID: "ws", At: time.Now().Add(time.Second)})
		d := newDispatcher(store)
		go func() { _ = d.Run(t.Context()) }()
		for range 3 {
			if w := next(t, d); w.RunID != "a" {
				t.Fatal(w.RunID)
			}
		}
	})
}

// flaky is a store whose first NextDue fails.
type flaky struct {
	*rows
	failed bool
}

func (f *flaky) NextDue(ctx context.Context, after time.Time) (*time.Time, error) {
	if !f.failed {
		f.failed = true
		return nil, errors.New("unavailable")
	}
	return f.rows.NextDue(ctx, after)
}

func TestPollIsRetriedAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{rows: &rows{}}
		at := time.Now().Add(time.Minute)
		store.add(run.Wake{RunID: "a", WorkspaceID: "ws", At: at})
		d := newDispatcher(store)
		go func() { _ = d.Run(t.Context()) }()
		next(t, d)
		if late := time.Since(at); late > time.Second {
			t.Errorf("it woke %s late", late)
		}
	})
}

// Stats reports the number of queued runs and the time of the oldest.
func TestStats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(&rows{})
		if s := d.Stats(); s.Queued != 0 || !s.Oldest.IsZero() {
			t.Errorf("Stats of an empty queue: %+v", s)
		}
		first := clock.Now()
		d.Wake(run.Wake{RunID: "a", WorkspaceID: "ws_a", Epoch: 1})
		time.Sleep(time.Minute)
		second := clock.Now()
		d.Wake(run.Wake{RunID: "b", WorkspaceID: "ws_b", Epoch: 1, At: second.Add(-time.Hour)})
		d.Wake(run.Wake{RunID: "a", WorkspaceID: "ws_a", Epoch: 2}) // keeps its position and time
		d.Wake(run.Wake{RunID: "later", WorkspaceID: "ws_a", At: second.Add(time.Hour)})
		if s := d.Stats(); s.Queued != 2 || !s.Oldest.Equal(first) {
			t.Errorf("%+v, want 2 runs, the first since %s", s, first)
		}
		if w := next(t, d); w.RunID != "a" || w.Epoch != 2 {
			t.Fatalf("got %+v", w)
		}
		if s := d.Stats(); s.Queued != 1 || !s.Oldest.Equal(second) {
			t.Errorf("%+v, want 1 run since %s", s, second)
		}
		next(t, d)
		if s := d.Stats(); s.Queued != 0 || !s.Oldest.IsZero() {
			t.Errorf("%+v", s)
		}
	})
}
