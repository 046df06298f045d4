package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/vault"
)

// TestFaultAtEveryCommitOfCheckpoints has a fault at each commit of a run with
// checkpoints, one after the other. Each call gets the committed state, so that no
// committed progress is lost and none is repeated.
func TestFaultAtEveryCommitOfCheckpoints(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{crashBefore, crashAfter, failBefore, failAfter, cancelBefore, cancelAfter, restart} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for commit, happened := 0, true; happened; commit++ {
				synctest.Test(t, func(t *testing.T) { happened = faultInCheckpoints(t, injectedFault{commit, kind}) })
			}
		})
	}
}

// faultInCheckpoints reports whether the fault happened.
func faultInCheckpoints(t *testing.T, f injectedFault) bool {
	w := newWorld(t)
	st := &checkpointStore{Store: w.store.Leases, world: w, fault: f, committed: map[string]int{}, stops: make(chan struct{}, 1)}
	w.pages.before = st.beforePage
	n := w.start(st)
	id := w.startRun(w.workflow(`[
		{"id": "list", "uses": "test.pages", "with": {"pages": 3}},
		{"id": "all", "foreach": "[2, 3]", "parallel": 2, "steps": [{"id": "each", "uses": "test.pages", "with": {"pages": "${{ item }}"}}]}]`), "{}")
	ended, stopWatching := w.watchers.Watch(id)
	defer stopWatching()
	select {
	case <-st.stops:
		if st.isDead() {
			w.current.CompareAndSwap(n, nil)
			n.engine.Abort(id)
		}
		n.end()
		st.revive()
		w.start(st)
	case <-ended:
	}
	d := w.endOf(id)
	synctest.Wait()
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, problem := range st.problems {
		t.Errorf("%s commit %d: %s", f.Kind, f.Write, problem)
	}
	want := run.Succeeded
	if st.cancelled {
		want = run.Cancelled
	}
	if d.Status != want {
		t.Errorf("%s commit %d: the run is %s: %+v", f.Kind, f.Write, d.Status, d.Error)
	}
	for _, step := range d.Steps {
		if step.State != nil {
			t.Errorf("%s commit %d: %s has a state after the end", f.Kind, f.Write, step.Path)
		}
	}
	return st.commits > f.Write
}

// checkpointStore is a store with a fault at one commit. It knows the committed progress
// of each step.
type checkpointStore struct {
	engine.Store
	world *world
	fault injectedFault
	stops chan struct{} // receives a value when the process crashes or has to stop

	mu        sync.Mutex
	commits   int
	dead      bool
	cancelled bool
	committed map[string]int // next page by path
	problems  []string
}

// beforePage checks that a call continues where the committed state ends.
func (s *checkpointStore) beforePage(_ context.Context, req action.Request, page int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := s.committed[req.Run.Path]; page != want && !s.dead && !s.cancelled {
		s.problems = append(s.problems, fmt.Sprintf("%s reads page %d, the committed state says %d", req.Run.Path, page, want))
	}
	return nil
}

func (s *checkpointStore) Commit(ctx context.Context, lease run.Lease, of run.Run, d run.Decision) (committed run.Committed, err error) {
	kind := s.next()
	switch kind {
	case crashBefore:
		s.crash()
	case failBefore:
		return run.Committed{}, errInjected
	case cancelBefore:
		s.cancel(lease.RunID)
	case restart:
		s.stops <- struct{}{}
	}
	if s.isDead() {
		return run.Committed{}, errInjected
	}
	if committed, err = s.Store.Commit(ctx, lease, of, d); err == nil && committed.Held {
		s.note(of, d)
	}
	switch kind {
	case crashAfter:
		s.crash()
		return run.Committed{}, errInjected
	case failAfter:
		return run.Committed{}, errInjected
	case cancelAfter:
		if d.Finish == nil {
			s.cancel(lease.RunID)
		}
	}
	return committed, err
}

// note records the committed progress.
func (s *checkpointStore) note(of run.Run, d run.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range d.Steps {
		if step.State == nil {
			continue
		}
		ref := vault.Ref{Workspace: of.WorkspaceID, Table: "steps", ID: of.ID + "/" + step.Path}
		plain, err := s.world.vault.Open(context.Background(), ref, step.State)
		var state progress
		if err == nil {
			err = json.Unmarshal(plain, &state)
		}
		if err != nil || state.Next < s.committed[step.Path] {
			s.problems = append(s.problems, fmt.Sprintf("%s has the state %q after page %d: %v", step.Path, plain, s.committed[step.Path], err))
		}
		s.committed[step.Path] = state.Next
	}
}

// next returns the fault of the next commit.
func (s *checkpointStore) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits++
	if s.fault.Write == s.commits-1 {
		return s.fault.Kind
	}
	return ""
}

func (s *checkpointStore) crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
	s.stops <- struct{}{}
}

func (s *checkpointStore) cancel(runID string) {
	_, err := s.world.runs.Cancel(context.Background(), s.world.actor, runID)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancelled = s.cancelled || err == nil
}

func (s *checkpointStore) isDead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

func (s *checkpointStore) revive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = false
}
