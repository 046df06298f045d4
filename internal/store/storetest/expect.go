package storetest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
)

// The functions below take the results of a call: must(call())(t).

// must returns the result of a call that must not fail.
func must[T any](got T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
}

// found returns the row that a call must find.
func found[T any](got *T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if got == nil {
			t.Fatal("found nothing")
		}
		return *got
	}
}

// missing checks that a call finds nothing.
func missing[T any](got *T, err error) func(*testing.T, string) {
	return func(t *testing.T, what string) {
		t.Helper()
		if err != nil || got != nil {
			t.Errorf("%s: got %+v, %v", what, got, err)
		}
	}
}

// empty checks that a list holds nothing.
func empty[T any](got paging.Page[T], err error) func(*testing.T, string) {
	return func(t *testing.T, what string) {
		t.Helper()
		if err != nil || len(got.Items) != 0 || got.Next != "" {
			t.Errorf("%s: got %+v, %v", what, got, err)
		}
	}
}

// returns checks the result of a write.
func returns[T comparable](got T, err error) func(*testing.T, string, T) {
	return func(t *testing.T, what string, want T) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v; want %v", what, got, err, want)
		}
	}
}

// fails checks that a call returns an error.
func fails[T any](got T, err error) func(*testing.T, string) {
	return func(t *testing.T, what string) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: succeeded and returned %v", what, got)
		}
	}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func mapped[T, U any](items []T, f func(T) U) []U {
	out := make([]U, len(items))
	for i, item := range items {
		out[i] = f(item)
	}
	return out
}

// concurrently calls f n times at the same moment and returns how often it
// returned true.
func concurrently(t *testing.T, n int, f func(i int) (bool, error)) int {
	t.Helper()
	var (
		gate    = make(chan struct{})
		running sync.WaitGroup
		mu      sync.Mutex
		yes     int
	)
	for i := range n {
		running.Go(func() {
			<-gate
			ok, err := f(i)
			if err != nil {
				t.Errorf("call %d: %v", i, err)
			}
			if ok {
				mu.Lock()
				yes++
				mu.Unlock()
			}
		})
	}
	close(gate)
	running.Wait()
	return yes
}

// fullPage is a page that contains every row.
var fullPage = paging.Request{Limit: 1000}

// endedRun is the notification of the end of a run.
type endedRun struct {
	Workspace, Run string
	Status         run.Status
}

// notifications are all notifications of a store.
type notifications struct {
	Wakes          []run.Wake
	AnswersArrived []string
	Started        []string
	Ended          []endedRun
	Deleted        []string
	Scheduled      []time.Time
	PendingEvents  int
}

// recorder records the notifications of a store.
type recorder struct {
	mu     sync.Mutex
	got    notifications
	onWake func(run.Wake)
	onEnd  func(run.Completion)
}

func (e *recorder) notify() store.Notify {
	return store.Notify{
		Wake: func(w run.Wake) {
			e.add(func(h *notifications) { h.Wakes = append(h.Wakes, w) })
			if e.onWake != nil {
				e.onWake(w)
			}
		},
		AnswerArrived: func(runID string) {
			e.add(func(h *notifications) { h.AnswersArrived = append(h.AnswersArrived, runID) })
		},
		Started: func(workspaceID string) { e.add(func(h *notifications) { h.Started = append(h.Started, workspaceID) }) },
		Ended: func(end run.Completion) {
			e.add(func(h *notifications) { h.Ended = append(h.Ended, endedRun{end.WorkspaceID, end.RunID, end.Status}) })
			if e.onEnd != nil {
				e.onEnd(end)
			}
		},
		EventPending:    func(time.Time) { e.add(func(h *notifications) { h.PendingEvents++ }) },
		Scheduled:       func(_ string, at time.Time) { e.add(func(h *notifications) { h.Scheduled = append(h.Scheduled, at) }) },
		WorkflowDeleted: func(workflowID string) { e.add(func(h *notifications) { h.Deleted = append(h.Deleted, workflowID) }) },
	}
}

func (e *recorder) add(update func(*notifications)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	update(&e.got)
}

// take returns the notifications since the last call.
func (e *recorder) take() notifications {
	e.mu.Lock()
	defer e.mu.Unlock()
	taken := e.got
	e.got = notifications{}
	return taken
}

// endsOf returns the notifications of the end of one run.
func (h notifications) endsOf(runID string) []endedRun {
	return slices.DeleteFunc(slices.Clone(h.Ended), func(e endedRun) bool { return e.Run != runID })
}
