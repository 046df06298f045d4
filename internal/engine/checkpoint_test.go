package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
)

// pages is the action test.pages, which reads {"pages": n} pages with a checkpoint after
// each but the last, and returns what it has read. A test can do something before a page
// is returned.
type pages struct {
	mu     sync.Mutex
	read   []string // path and number of each page, as it was begun
	before func(ctx context.Context, req action.Request, page int) error
	// result, if not nil, replaces the result after a page.
	result func(page int, r *action.Result)
}

// progress is the state of test.pages. Each item is a chunk; after every third page they
// are replaced with one.
type progress struct {
	Next int `json:"next"`
}

func newPages() *pages { return &pages{} }

func (p *pages) entry() action.Entry {
	return action.Entry{Spec: action.Spec{Name: "test.pages", Input: `{"type": "object"}`, Output: `{}`}, Action: action.Func(p.run)}
}

func (p *pages) run(ctx context.Context, req action.Request) (action.Result, error) {
	var done progress
	if req.State != nil {
		if err := json.Unmarshal(req.State, &done); err != nil {
			return action.Result{}, err
		}
	}
	page := done.Next
	p.mu.Lock()
	p.read = append(p.read, fmt.Sprintf("%s/%d", req.Run.Path, page))
	p.mu.Unlock()
	if p.before != nil {
		if err := p.before(ctx, req, page); err != nil {
			return action.Result{}, err
		}
	}
	item, _ := req.Input["item"].(string)
	items := append(slices.Clone(req.Chunks), fmt.Append(nil, item, page))
	done.Next = page + 1
	result := action.Result{Checkpoint: &action.Checkpoint{State: done, Chunk: items[len(items)-1]}}
	if done.Next%3 == 0 {
		result.Checkpoint.Chunk, result.Checkpoint.Restart = bytes.Join(items, []byte(" ")), true
	}
	if total, _ := req.Input["pages"].(int); done.Next >= total {
		result = action.Result{Output: map[string]any{"items": string(bytes.Join(items, []byte(" ")))}}
	}
	if p.result != nil {
		p.result(page, &result)
	}
	return result, nil
}

// begun returns the pages that were begun so far.
func (p *pages) begun() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.read)
}

const threePages = `[{"id": "list", "uses": "test.pages", "with": {"pages": 3}}]`

func TestCheckpoints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		commits := 0
		w.start(&hooked{Store: w.store.Leases, before: func(run.Lease, run.Decision) { commits++ }})
		d := w.finished(w.startRun(w.workflow(threePages), "{}"))
		if got := string(d.Steps[0].Output); got != `{"items":"0 1 2"}` {
			t.Errorf("the output is %s: %+v", got, d.Error)
		}
		if diff := cmp.Diff([]string{"list/0", "list/1", "list/2"}, w.pages.begun()); diff != "" {
			t.Error(diff)
		}
		// One when the step starts, one for each checkpoint, and the end.
		if commits != 4 {
			t.Errorf("%d commits", commits)
		}
		if d.Steps[0].State != nil || d.Steps[0].Attempt != 1 {
			t.Errorf("after the end: %+v", d.Steps[0])
		}
	})
}

// TestCheckpointThenWait suspends the step between two pages. The run is released and
// read again.
func TestCheckpointThenWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pages.result = func(page int, r *action.Result) {
			if page == 0 {
				r.Wait = &action.Wait{For: time.Hour, Reason: "the service asked for a pause"}
			}
		}
		w.start(w.store.Leases)
		began := time.Now()
		id := w.startRun(w.workflow(threePages), "{}")
		synctest.Wait()
		if step := w.get(id).Steps[0]; step.Status != run.StepWaiting || step.State == nil || step.Reason == "" {
			t.Errorf("while it waits: %+v", step)
		}
		if d := w.endOf(id); d.Status != run.Succeeded || time.Since(began) < time.Hour {
			t.Errorf("%s after %s: %+v", d.Status, time.Since(began), d.Error)
		}
		if diff := cmp.Diff([]string{"list/0", "list/1", "list/2"}, w.pages.begun()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestCheckpointResetsAttempts has a step with two attempts that fails once at each page.
// A page that fails twice fails the step.
func TestCheckpointResetsAttempts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		failures int // of each page
		status   run.Status
		pages    []string
		attempts int
	}{
		"progress between failures":  {1, run.Succeeded, []string{"list/0", "list/0", "list/1", "list/1", "list/2", "list/2"}, 3},
		"failures without progress":  {2, run.Failed, []string{"list/0", "list/0"}, 1},
		"no failures, no new counts": {0, run.Succeeded, []string{"list/0", "list/1", "list/2"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				failed := map[int]int{}
				w.pages.before = func(_ context.Context, _ action.Request, page int) error {
					if failed[page]++; failed[page] <= test.failures {
						return &action.Failure{Code: "test_passing", Message: "not yet", Retryable: true}
					}
					return nil
				}
				w.start(w.store.Leases)
				d := w.endOf(w.startRun(w.workflow(`[{"id": "list", "retry": {"max_attempts": 2}, "uses": "test.pages", "with": {"pages": 3}}]`), "{}"))
				if d.Status != test.status || len(d.Attempts) != test.attempts || d.Steps[0].State != nil {
					t.Errorf("%s after %d earlier attempts: %+v", d.Status, len(d.Attempts), d.Steps[0])
				}
				if diff := cmp.Diff(test.pages, w.pages.begun()); diff != "" {
					t.Error(diff)
				}
				// Each attempt has its own number, although the count starts anew.
				for i, attempt := range d.Attempts {
					if attempt.Number != i+1 {
						t.Errorf("attempt %d has the number %d", i+1, attempt.Number)
					}
				}
			})
		})
	}
}

// TestTimeoutAppliesToEachCall reads three pages that together take longer than the
// timeout of the step, one of them too long at first.
func TestTimeoutAppliesToEachCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		slow := true
		w.pages.before = func(ctx context.Context, _ action.Request, page int) error {
			length := 8 * time.Second
			if page == 1 && slow {
				slow, length = false, time.Hour
			}
			select {
			case <-time.After(length):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		w.start(w.store.Leases)
		d := w.endOf(w.startRun(w.workflow(`[{"id": "list", "timeout": "10s", "retry": {"max_attempts": 2}, "uses": "test.pages", "with": {"pages": 3}}]`), "{}"))
		if d.Status != run.Succeeded || len(d.Attempts) != 1 || d.Attempts[0].Error.Code != action.TimedOut {
			t.Errorf("%s, earlier attempts %+v: %+v", d.Status, d.Attempts, d.Error)
		}
		if diff := cmp.Diff([]string{"list/0", "list/1", "list/1", "list/2"}, w.pages.begun()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRunTimeoutAppliesToAllCalls has a step that makes progress for ever.
func TestRunTimeoutAppliesToAllCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pages.before = func(context.Context, action.Request, int) error {
			time.Sleep(time.Second)
			return nil
		}
		w.start(w.store.Leases)
		d := w.endOf(w.startRun(w.workflowWith(`[{"id": "list", "uses": "test.pages", "with": {"pages": 1000000}}]`, `{"timeout": "1m"}`), "{}"))
		if d.Status != run.Failed || d.Error.Code != run.CodeRunTimeout || len(w.pages.begun()) < 59 {
			t.Errorf("%s after %d pages: %+v", d.Status, len(w.pages.begun()), d.Error)
		}
		if step := d.Steps[0]; step.Status != run.StepCancelled || step.State != nil {
			t.Errorf("the step: %+v", step)
		}
	})
}

// TestCheckpointTooLarge returns a state that exceeds the limit of outputs.
func TestCheckpointTooLarge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pages.result = func(page int, r *action.Result) {
			if page == 1 {
				r.Checkpoint.Chunk = make([]byte, w.actor.Workspace.Plan.Limits().OutputBytes-5)
			}
		}
		w.start(w.store.Leases)
		d := w.endOf(w.startRun(w.workflow(threePages), "{}"))
		step := d.Steps[0]
		if d.Status != run.Failed || step.Error.Code != run.CodeOutputTooLarge || !strings.Contains(step.Error.Message, "the state of the step has") || step.State != nil {
			t.Errorf("%s: %+v", d.Status, step.Error)
		}
	})
}

// TestCheckpointsReplaceEachOther has states that together exceed the limit of the run's
// stored data, but never at the same time.
func TestCheckpointsReplaceEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		limits := w.actor.Workspace.Plan.Limits()
		count := limits.StateBytes/limits.OutputBytes + 2
		w.pages.result = func(page int, r *action.Result) {
			if r.Checkpoint != nil {
				r.Checkpoint.State = map[string]any{"next": page + 1, "fill": strings.Repeat("x", limits.OutputBytes-1000)}
			}
		}
		w.start(w.store.Leases)
		d := w.endOf(w.startRun(w.workflow(fmt.Sprintf(`[{"id": "list", "uses": "test.pages", "with": {"pages": %d}}]`, count)), "{}"))
		if d.Status != run.Succeeded {
			t.Errorf("%s: %+v", d.Status, d.Error)
		}
	})
}

// TestCancelBetweenCheckpoints cancels a run while it reads its second page. Its
// checkpoint is not written, and no further page is read.
func TestCancelBetweenCheckpoints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pages.before = func(_ context.Context, req action.Request, page int) error {
			if page == 1 {
				_, err := w.runs.Cancel(context.Background(), w.actor, req.Run.ID)
				return err
			}
			return nil
		}
		w.start(w.store.Leases)
		d := w.endOf(w.startRun(w.workflow(threePages), "{}"))
		synctest.Wait()
		if step := d.Steps[0]; d.Status != run.Cancelled || step.Status != run.StepCancelled || step.State != nil {
			t.Errorf("%s: %+v", d.Status, step)
		}
		if got := w.pages.begun(); len(got) != 2 {
			t.Errorf("it read %v", got)
		}
	})
}

// TestCheckpointNeedsTheLease takes the run over while its second page is read. The first
// engine cannot write its checkpoint; the second one reads that page again.
func TestCheckpointNeedsTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release, reading := make(chan struct{}), false
		w.pages.before = func(_ context.Context, _ action.Request, page int) error {
			if page == 1 && !reading {
				reading = true
				<-release
			}
			return nil
		}
		first := w.start(w.store.Leases)
		id := w.startRun(w.workflow(threePages), "{}")
		synctest.Wait()
		w.start(w.store.Leases)
		d := w.endOf(id)
		close(release)
		synctest.Wait()
		if d.Status != run.Succeeded {
			t.Errorf("%s: %+v", d.Status, d.Error)
		}
		if diff := cmp.Diff([]string{"list/0", "list/1", "list/1", "list/2"}, w.pages.begun()); diff != "" {
			t.Error(diff)
		}
		if lost := first.engine.Stats().LeasesLost; lost != 1 {
			t.Errorf("the first engine lost %d leases", lost)
		}
	})
}

// TestCheckpointCountsAsGettingPastACrash crashes the process at every page, more often
// than a run survives without progress.
func TestCheckpointCountsAsGettingPastACrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const total = 8
		crashed := map[int]int{}
		w.pages.before = func(ctx context.Context, _ action.Request, page int) error {
			if crashed[page]++; crashed[page] <= 2 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		id := w.startRun(w.workflow(fmt.Sprintf(`[{"id": "list", "timeout": "15m", "uses": "test.pages", "with": {"pages": %d}}]`, total)), "{}")
		for range 2 * total {
			n, st := w.live()
			w.crash(n, st, id)
		}
		w.live()
		if d := w.get(id); d.Status != run.Succeeded || len(w.pages.begun()) != 3*total {
			t.Errorf("%s after %v: %+v", d.Status, w.pages.begun(), d.Error)
		}
	})
}

// TestStateIsSealed has a secret in its state. The state of the next call has it, the
// database does not.
func TestStateIsSealed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const value = "correct horse battery"
		w := newWorld(t)
		if _, _, err := w.values.Secrets.Put(t.Context(), w.actor, "token", value); err != nil {
			t.Fatal(err)
		}
		var states []string
		st := &hooked{Store: w.store.Leases}
		w.pages.before = func(ctx context.Context, req action.Request, page int) error {
			states = append(states, fmt.Sprintf("%s %s", req.State, req.Chunks))
			if page == 1 && len(states) == 2 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		n := w.start(st)
		id := w.startRun(w.workflow(`[{"id": "list", "timeout": "15m", "uses": "test.pages", "with": {"pages": 3, "item": "${{ secrets.token }} "}}]`), "{}")
		synctest.Wait()
		stored := w.get(id).Steps[0]
		if stored.State == nil || strings.Contains(string(stored.State), "horse") || strings.Contains(string(stored.Input), "horse") {
			t.Errorf("the stored state is %q", stored.State)
		}
		snap, err := w.store.Leases.Snapshot(t.Context(), id)
		if err != nil || len(snap.Chunks) != 1 || strings.Contains(string(snap.Chunks[0].Data), "horse") {
			t.Errorf("the stored chunks are %v, %v", snap.Chunks, err)
		}
		w.crash(n, st, id)
		w.start(w.store.Leases)
		d := w.endOf(id)
		if len(states) != 4 || states[1] != states[2] || !strings.Contains(states[2], value) {
			t.Errorf("the states of the calls: %q", states)
		}
		if got := string(d.Steps[0].Output); got != `{"items":"*** 0 *** 1 *** 2"}` {
			t.Errorf("the output is %s", got)
		}
	})
}

// TestCheckpointsInRounds reads pages in parallel rounds and in a repeat, with a crash at
// every commit.
func TestCheckpointsInRounds(t *testing.T) {
	t.Parallel()
	crashAtEveryCommit(t, `[
		{"id": "all", "foreach": "[2, 3, 1]", "parallel": 2, "steps": [{"id": "list", "uses": "test.pages", "with": {"pages": "${{ item }}"}}]},
		{"id": "again", "repeat": {"until": "index == 1"}, "steps": [{"id": "more", "uses": "test.pages", "with": {"pages": 2}}]}]`, `{}`, nil)
}

// TestStepTestWithCheckpoints tests a single step that returns checkpoints.
func TestStepTestWithCheckpoints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		flow := w.workflow(threePages)
		result, err := n.engine.TestStep(t.Context(), run.StepExecution{
			WorkspaceID: w.actor.Workspace.ID, Plan: w.actor.Workspace.Plan, Step: w.programOf(flow, w.versionOf(flow)).Steps[0], Env: &expr.Env{Steps: map[string]expr.Step{}},
		})
		if err != nil || result.Status != run.StepSucceeded || string(result.Output) != `{"items":"0 1 2"}` {
			t.Errorf("%+v, %v", result, err)
		}
	})
}
