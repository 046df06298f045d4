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

// gone checks that a call finds nothing.
func gone[T any](got *T, err error) func(*testing.T, string) {
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

// answers checks the outcome of a write.
func answers[T comparable](got T, err error) func(*testing.T, string, T) {
	return func(t *testing.T, what string, want T) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s: answered %v, %v; want %v", what, got, err, want)
		}
	}
}

// fails checks that a call does not go through.
func fails[T any](got T, err error) func(*testing.T, string) {
	return func(t *testing.T, what string) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: went through and answered %v", what, got)
		}
	}
}

func same[T any](t *testing.T, what string, got, want T) {
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

// together calls f n times at the same moment and returns how often it
// answered true.
func together(t *testing.T, n int, f func(i int) (bool, error)) int {
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

// whole is a page that holds every row.
var whole = paging.Request{Limit: 1000}

// ended is what a store told of the end of a run.
type ended struct {
	Workspace, Run string
	Status         run.Status
}

// heard is all that a store told.
type heard struct {
	Wakes     []run.Wake
	Stirred   []string
	Started   []string
	Ended     []ended
	Deleted   []string
	Scheduled []time.Time
	Occasions int
}

// ear collects what a store tells.
type ear struct {
	mu     sync.Mutex
	heard  heard
	onWake func(run.Wake)
	onEnd  func(run.Ending)
}

func (e *ear) notify() store.Notify {
	return store.Notify{
		Wake: func(w run.Wake) {
			e.add(func(h *heard) { h.Wakes = append(h.Wakes, w) })
			if e.onWake != nil {
				e.onWake(w)
			}
		},
		Stirred: func(runID string) { e.add(func(h *heard) { h.Stirred = append(h.Stirred, runID) }) },
		Started: func(workspaceID string) { e.add(func(h *heard) { h.Started = append(h.Started, workspaceID) }) },
		Ended: func(end run.Ending) {
			e.add(func(h *heard) { h.Ended = append(h.Ended, ended{end.WorkspaceID, end.RunID, end.Status}) })
			if e.onEnd != nil {
				e.onEnd(end)
			}
		},
		Occasion:        func(time.Time) { e.add(func(h *heard) { h.Occasions++ }) },
		Scheduled:       func(_ string, at time.Time) { e.add(func(h *heard) { h.Scheduled = append(h.Scheduled, at) }) },
		WorkflowDeleted: func(workflowID string) { e.add(func(h *heard) { h.Deleted = append(h.Deleted, workflowID) }) },
	}
}

func (e *ear) add(to func(*heard)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	to(&e.heard)
}

// take returns what was heard since the last time.
func (e *ear) take() heard {
	e.mu.Lock()
	defer e.mu.Unlock()
	taken := e.heard
	e.heard = heard{}
	return taken
}

// endsOf returns what was heard of the end of one run.
func (h heard) endsOf(runID string) []ended {
	return slices.DeleteFunc(slices.Clone(h.Ended), func(e ended) bool { return e.Run != runID })
}
