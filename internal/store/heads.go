package store

import (
	"context"
	"slices"
	"sync"

	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// heads remembers, in a cluster, those of workflows that runs can be started of.
// What is remembered may be old: the unit that starts a run finds out, and then
// it is read again.
type heads struct {
	mu    sync.Mutex
	known map[headKey]run.Head
}

type headKey struct{ workspaceID, workflowID string }

// maxHeads bounds how many are remembered.
const maxHeads = 10_000

func (h *heads) find(of headKey) (run.Head, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	head, ok := h.known[of]
	return head, ok
}

func (h *heads) keep(of headKey, head run.Head) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil || len(h.known) >= maxHeads {
		h.known = map[headKey]run.Head{}
	}
	h.known[of] = head
}

func (h *heads) forget(of headKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, of)
}

// LikelyHead implements run.Store. Only an active workflow is remembered: that
// one cannot be run is never said from memory.
func (s *Store) LikelyHead(ctx context.Context, workspaceID, workflowID string) (*run.Head, error) {
	key := headKey{workspaceID, workflowID}
	if head, ok := s.heads.find(key); ok {
		return &head, nil
	}
	head, err := s.WorkflowHead(ctx, workspaceID, workflowID)
	if err == nil && head != nil && head.State == workflow.Active && s.cluster != nil && !nested(ctx) {
		s.heads.keep(key, *head)
	}
	return head, err
}

// WorkflowHead implements run.Store.
func (s *Store) WorkflowHead(ctx context.Context, workspaceID, workflowID string) (*run.Head, error) {
	var head *run.Head
	err := s.read(ctx, func(c Conn) (err error) {
		head, err = one(c, `SELECT w.name, w.state, w.version, w.revision, s.plan FROM workflows w JOIN workspaces s ON s.id = w.workspace_id
			WHERE w.id = $1 AND w.workspace_id = $2 AND w.deleted_at IS NULL`, []any{workflowID, workspaceID},
			func(r Row) (h run.Head, err error) {
				err = r.Scan(&h.Name, (*string)(&h.State), &h.Version, &h.Revision, (*string)(&h.Plan))
				return h, err
			})
		return err
	})
	return head, err
}

// ofHead finds the workflow of a run if it, and the plan of its workspace, are as
// they were when the run was decided on.
const ofHead = `FROM workflows w JOIN workspaces s ON s.id = w.workspace_id
	WHERE w.id = $1 AND w.workspace_id = $2 AND w.revision = $3 AND s.plan = $4 AND w.deleted_at IS NULL`

func headOf(start run.Start) []any {
	return []any{start.Run.WorkflowID, start.Run.WorkspaceID, start.Revision, string(start.Plan)}
}

// expectHead has a unit come to nothing if the workflow of a run has changed.
func (s *Store) expectHead(u *unit, start run.Start) error {
	if err := lockHead(u, start); err != nil {
		return err
	}
	return u.Expect(`SELECT w.id `+ofHead, headOf(start)...)
}

// sameHead tells whether the workflow of a run has not changed.
func (s *Store) sameHead(u *unit, start run.Start) (bool, error) {
	if err := lockHead(u, start); err != nil {
		return false, err
	}
	same, err := number(u, `SELECT count(*) `+ofHead, headOf(start)...)
	if same == 0 {
		s.heads.forget(headKey{start.Run.WorkspaceID, start.Run.WorkflowID})
	}
	return same == 1, err
}

// sameHeads is sameHead for runs of one workflow. They were decided on one after
// the other: all have to have been decided on the same.
func (s *Store) sameHeads(u *unit, starts []run.Start) (bool, error) {
	first := starts[0]
	if slices.ContainsFunc(starts, func(o run.Start) bool { return o.Revision != first.Revision || o.Plan != first.Plan }) {
		s.heads.forget(headKey{first.Run.WorkspaceID, first.Run.WorkflowID})
		return false, nil
	}
	return s.sameHead(u, first)
}

func lockHead(u *unit, start run.Start) error {
	return u.Lock(Lock{Kind: lockWorkflow, Key: start.Run.WorkflowID, Shared: true})
}
