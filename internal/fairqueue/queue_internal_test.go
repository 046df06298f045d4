package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/test/lane"
)

func (t *ticket) hasSlot() bool {
	select {
	case <-t.granted:
		return true
	default:
		return false
	}
}

// queueModel is a queue with the requests that were made and not released.
type queueModel struct {
	q        *Queue
	requests []*ticket
	slots    int
	share    int
	waiting  int
	passed   map[*ticket]map[string]int // by waiting request: grants to other workspaces since
}

func (m *queueModel) count(workspaceID string, slot bool) int {
	n := 0
	for _, t := range m.requests {
		if (workspaceID == "" || t.holder.id == workspaceID) && t.hasSlot() == slot {
			n++
		}
	}
	return n
}

func (m *queueModel) enqueue(t *rapid.T) {
	id := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "workspace")
	before := m.granted()
	full := m.count(id, false) >= m.waiting
	request, err := m.q.enqueue(id)
	if errors.Is(err, ErrFull) != full || err == nil && full {
		t.Fatalf("%d of %d requests of %s wait, and the next gets %v", m.count(id, false), m.waiting, id, err)
	}
	if err == nil {
		m.requests = append(m.requests, request)
	}
	m.countPassed(t, before)
}

func (m *queueModel) release(t *rapid.T) {
	if len(m.requests) == 0 {
		t.Skip("no requests")
	}
	i := rapid.IntRange(0, len(m.requests)-1).Draw(t, "which")
	before := m.granted()
	m.q.release(m.requests[i])
	delete(m.passed, m.requests[i])
	m.requests = slices.Delete(m.requests, i, i+1)
	m.countPassed(t, before)
}

func (m *queueModel) granted() map[*ticket]bool {
	granted := map[*ticket]bool{}
	for _, r := range m.requests {
		granted[r] = r.hasSlot()
	}
	return granted
}

// countPassed counts for the oldest request of each workspace below its share how
// often other workspaces got a slot instead. None gets two while another waits
// for one.
func (m *queueModel) countPassed(t *rapid.T, before map[*ticket]bool) {
	oldest := map[string]*ticket{}
	for _, r := range m.requests {
		if !r.hasSlot() && oldest[r.holder.id] == nil {
			oldest[r.holder.id] = r
		}
	}
	for _, r := range m.requests {
		if first := oldest[r.holder.id]; r.hasSlot() && !before[r] && first != nil && slices.Index(m.requests, first) < slices.Index(m.requests, r) {
			t.Fatalf("a request of %s got a slot before an older one", r.holder.id)
		}
	}
	for id, waits := range oldest {
		if m.count(id, true) >= m.share {
			delete(m.passed, waits)
			continue
		}
		if m.passed[waits] == nil {
			m.passed[waits] = map[string]int{}
		}
		for _, r := range m.requests {
			if r.holder.id != id && r.hasSlot() && !before[r] {
				if m.passed[waits][r.holder.id]++; m.passed[waits][r.holder.id] > 1 {
					t.Fatalf("%s got two slots while %s waited for one", r.holder.id, id)
				}
			}
		}
	}
}

func (m *queueModel) check(t *rapid.T) {
	used, waiting := m.q.Stats()
	if used != m.count("", true) || waiting != m.count("", false) || used > m.slots {
		t.Fatalf("%d of %d slots are used and %d requests wait; the queue says %d and %d", m.count("", true), m.slots, m.count("", false), used, waiting)
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		has, waits := m.count(id, true), m.count(id, false)
		if has > m.share {
			t.Fatalf("%s has %d slots, its share is %d", id, has, m.share)
		}
		if waits > 0 && has < m.share && used < m.slots {
			t.Fatalf("%s waits although %d of %d slots are used", id, used, m.slots)
		}
		if _, known := m.q.workspaces[id]; known != (has+waits > 0) {
			t.Fatalf("%s has %d slots and %d requests; the queue knows it: %v", id, has, waits, known)
		}
	}
}

func TestFairQueueMatchesModel(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		m := &queueModel{slots: rapid.IntRange(1, 4).Draw(t, "slots"), waiting: rapid.IntRange(1, 5).Draw(t, "waiting"), passed: map[*ticket]map[string]int{}}
		m.share = rapid.IntRange(1, m.slots).Draw(t, "share")
		m.q = New(m.slots, m.share, m.waiting)
		t.Repeat(map[string]func(*rapid.T){"enqueue": m.enqueue, "enqueue again": m.enqueue, "release": m.release, "": m.check})
		for _, request := range m.requests {
			m.q.release(request)
		}
		if used, waiting := m.q.Stats(); used+waiting+len(m.q.workspaces)+len(m.q.roundRobin) != 0 {
			t.Fatalf("%d slots are used, %d requests wait, and %d workspaces are known after the last was released", used, waiting, len(m.q.workspaces))
		}
	})
}

// Workspaces wait and give up concurrently. All that do not give up get a slot,
// and no slot is lost.
func TestNoSlotIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slots, share = 4, 3
		q := New(slots, share, 0)
		var all sync.WaitGroup
		for i := range 400 {
			all.Go(func() {
				ctx, patient := t.Context(), i%3 != 0
				if !patient {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Duration(i)*time.Millisecond)
					defer cancel()
				}
				begun := time.Now()
				release, err := q.Acquire(ctx, fmt.Sprint(i%5))
				switch {
				case err == nil:
					time.Sleep(time.Duration(1+i%7) * time.Millisecond)
					release()
				case patient || !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Duration(i)*time.Millisecond:
					t.Errorf("request %d ended after %s with %v", i, time.Since(begun), err)
				}
			})
		}
		all.Wait()
		for i := range slots {
			release, err := q.Acquire(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(release)
		}
	})
}

// A workspace with a long backlog keeps all the slots of its share in use, and
// another gets the remaining one without waiting.
func TestBacklogLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := New(4, 3, 0)
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				release, err := q.Acquire(t.Context(), "busy")
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Minute)
				release()
			})
		}
		synctest.Wait()
		begun := time.Now()
		for range 100 {
			release, err := q.Acquire(t.Context(), "other")
			if err != nil {
				t.Fatal(err)
			}
			release()
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("another workspace waited for %s", waited)
		}
		all.Wait()
		if took := time.Since(begun); took != 10*time.Minute {
			t.Errorf("30 requests of a minute in 3 slots took %s", took)
		}
	})
}

// With a single slot, a workspace waits at most for the request that runs.
func TestSingleSlotIsSharedInTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := New(1, 1, 0)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if release, err := q.Acquire(t.Context(), "busy"); err == nil {
					time.Sleep(time.Minute)
					release()
				}
			})
		}
		synctest.Wait()
		begun := time.Now()
		release, err := q.Acquire(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begun); waited != time.Minute {
			t.Errorf("another workspace waited for %s", waited)
		}
		release()
		all.Wait()
	})
}
