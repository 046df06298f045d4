package local_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/dispatch/local"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/test/lane"
)

// model is a simple model of a dispatcher.
type model struct {
	d        *local.Dispatcher
	queued   map[string]run.Wake
	inFlight []run.Wake
	reserved map[string]string // the workspaces of reserved runs
	epoch    int64
}

func subqueueOf(w run.Wake) string {
	if w.Isolated() {
		return "isolated"
	}
	return w.WorkspaceID
}

func (m *model) countInFlight(subqueue string) int {
	n := 0
	for _, w := range m.inFlight {
		if subqueueOf(w) == subqueue {
			n++
		}
	}
	return n
}

func (m *model) mayRun(w run.Wake) bool {
	if w.Isolated() {
		return m.countInFlight(subqueueOf(w)) < 1
	}
	return m.countInFlight(subqueueOf(w)) < w.Plan.Limits().ConcurrentRuns
}

func (m *model) wake(t *rapid.T) {
	n := rapid.IntRange(0, 30).Draw(t, "run")
	m.epoch++
	w := run.Wake{
		RunID: fmt.Sprint("run", n), WorkspaceID: fmt.Sprint("ws", n%3), Plan: auth.Free,
		Epoch:   m.epoch - rapid.SampledFrom([]int64{0, 0, 0, 7}).Draw(t, "stale by"),
		Crashes: rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "crashes"),
	}
	m.d.Wake(w)
	delete(m.reserved, w.RunID)
	if queued, ok := m.queued[w.RunID]; !ok || w.Epoch > queued.Epoch {
		m.queued[w.RunID] = w
	}
}

// next takes a run without waiting for one.
func (m *model) next(t *rapid.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w, err := m.d.Next(ctx)
	if err != nil {
		for _, w := range m.queued {
			if m.mayRun(w) {
				t.Fatalf("Next returned nothing, but %s is ready", w.RunID)
			}
		}
		return
	}
	if queued, ok := m.queued[w.RunID]; !ok || queued != w {
		t.Fatalf("took %+v instead of %+v", w, queued)
	}
	if !m.mayRun(w) {
		t.Fatalf("%s exceeds the limit of %s", w.RunID, subqueueOf(w))
	}
	delete(m.queued, w.RunID)
	m.inFlight = append(m.inFlight, w)
}

func (m *model) done(t *rapid.T) {
	if len(m.inFlight) == 0 {
		t.Skip("no runs in flight")
	}
	i := rapid.IntRange(0, len(m.inFlight)-1).Draw(t, "which")
	m.d.Done(m.inFlight[i])
	m.inFlight = slices.Delete(m.inFlight, i, i+1)
}

func (m *model) reserve(t *rapid.T) {
	n, most := rapid.IntRange(0, 30).Draw(t, "run"), rapid.IntRange(1, 8).Draw(t, "most")
	id, ws := fmt.Sprint("new", n), fmt.Sprint("ws", n%3)
	taken := 0
	for _, w := range m.queued {
		if subqueueOf(w) == ws {
			taken++
		}
	}
	for _, of := range m.reserved {
		if of == ws {
			taken++
		}
	}
	if _, got := m.d.Reserve(ws, id, most); got != (taken < most) {
		t.Fatalf("with %d of %d slots used, Reserve returned %v", taken, most, got)
	}
	if taken < most {
		m.reserved[id] = ws
	}
}

func TestDispatcherMatchesModel(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		m := &model{d: newDispatcher(&rows{}), queued: map[string]run.Wake{}, reserved: map[string]string{}, epoch: 10}
		t.Repeat(map[string]func(*rapid.T){
			"wake": m.wake, "wake again": m.wake, "next": m.next, "done": m.done, "reserve": m.reserve,
			"unreserve": func(t *rapid.T) {
				id := fmt.Sprint("new", rapid.IntRange(0, 30).Draw(t, "run"))
				m.d.Unreserve(id)
				delete(m.reserved, id)
			},
			"": func(t *rapid.T) {
				for id := range m.queued {
					if !m.d.Queued(id) {
						t.Fatalf("%s is lost", id)
					}
				}
			},
		})
	})
}

// TestNoWakeUpIsLost calls Wake, Next and Done concurrently.
func TestNoWakeUpIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const workspaces, each = 8, 200
		d := newDispatcher(&rows{})
		var (
			taken    atomic.Int64
			inFlight [workspaces]atomic.Int64
			all      sync.WaitGroup
		)
		ctx, cancel := context.WithCancel(t.Context())
		for range 64 {
			all.Go(func() {
				for {
					w, err := d.Next(ctx)
					if err != nil {
						return
					}
					ws := int(w.WorkspaceID[0] - 'a')
					if n := inFlight[ws].Add(1); n > int64(auth.Free.Limits().ConcurrentRuns) {
						t.Errorf("%d runs of a workspace are in flight", n)
					}
					time.Sleep(time.Duration(1+ws) * time.Millisecond)
					inFlight[ws].Add(-1)
					taken.Add(1)
					d.Done(w)
				}
			})
		}
		for ws := range workspaces {
			go func() {
				for i := range each {
					d.Wake(run.Wake{RunID: fmt.Sprint(ws, "-", i), WorkspaceID: string(rune('a' + ws)), Plan: auth.Free})
					if i%10 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
			}()
		}
		time.Sleep(time.Hour)
		if n := taken.Load(); n != workspaces*each {
			t.Errorf("%d of %d were taken", n, workspaces*each)
		}
		cancel()
		all.Wait()
	})
}

// TestLongQueueDoesNotBlockOtherWorkspaces has ten thousand due runs of one workspace,
// which may have five in flight, before those of another.
func TestLongQueueDoesNotBlockOtherWorkspaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &rows{}
		begun := time.Now()
		for i := range 10_000 {
			store.waiting = append(store.waiting, run.Wake{RunID: fmt.Sprintf("a%05d", i), WorkspaceID: "ws_a", Plan: auth.Free, At: begun.Add(-time.Hour)})
		}
		for i := range 3 {
			store.waiting = append(store.waiting, run.Wake{RunID: fmt.Sprint("b", i), WorkspaceID: "ws_b", Plan: auth.Free, At: begun.Add(-time.Minute)})
		}
		d := newDispatcher(store)
		go func() { _ = d.Run(t.Context()) }()
		got := map[string]int{}
		for range auth.Free.Limits().ConcurrentRuns + 3 {
			w, err := d.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			store.taken(w.RunID)
			got[w.WorkspaceID]++
		}
		if got["ws_b"] != 3 || !time.Now().Equal(begun) {
			t.Errorf("took %v after %s", got, time.Since(begun))
		}
		// Runs that become due later are not delayed either.
		later := run.Wake{RunID: "b9", WorkspaceID: "ws_b", Plan: auth.Free, At: begun.Add(time.Minute)}
		store.add(later)
		d.Wake(later)
		if w, err := d.Next(t.Context()); err != nil || w.RunID != "b9" || !time.Now().Equal(later.At) {
			t.Errorf("%s after %s, %v", w.RunID, time.Since(begun), err)
		}
	})
}

// TestLongQueueIsReadCompletely reads all runs of a long queue, in order.
func TestLongQueueIsReadCompletely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &rows{}
		begun := time.Now()
		for i := range 5000 {
			store.waiting = append(store.waiting, run.Wake{RunID: fmt.Sprintf("a%05d", i), WorkspaceID: "ws_a", Plan: auth.Free, At: begun.Add(-time.Hour)})
		}
		d := newDispatcher(store)
		go func() { _ = d.Run(t.Context()) }()
		for i := range 5000 {
			w, err := d.Next(t.Context())
			if err != nil || w.RunID != fmt.Sprintf("a%05d", i) {
				t.Fatalf("run %d is %s, %v", i, w.RunID, err)
			}
			store.taken(w.RunID)
			d.Done(w)
		}
		if !time.Now().Equal(begun) {
			t.Errorf("took %s", time.Since(begun))
		}
	})
}

func TestReservationsRespectLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(&rows{})
		const most = 10
		reserve := func(round int) int {
			var (
				got atomic.Int64
				all sync.WaitGroup
			)
			for i := range 64 {
				all.Go(func() {
					if _, ok := d.Reserve("ws", fmt.Sprint(round, "-", i), most); ok {
						got.Add(1)
					}
				})
			}
			all.Wait()
			return int(got.Load())
		}
		if got := reserve(1); got != most {
			t.Fatalf("reserved %d of %d slots", got, most)
		}
		// Unused reservations expire in time, not before.
		time.Sleep(10 * time.Second)
		if _, ok := d.Reserve("ws", "too early", most); ok {
			t.Error("a reservation expired too early")
		}
		time.Sleep(time.Millisecond)
		if got := reserve(2); got != most {
			t.Errorf("reserved %d of %d slots after the others had expired", got, most)
		}
		if _, ok := d.Reserve("other", "run", 1); !ok {
			t.Error("another workspace has no slot")
		}
	})
}
