package store

import (
	"context"
	"slices"
	"sync"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// workflowRefs caches the refs of active workflows. An entry may
// be stale: the transaction that starts a run detects that, and the ref is read
// again.
type workflowRefs struct {
	mu      sync.Mutex
	entries map[refKey]run.WorkflowRef
}

type refKey struct{ workspaceID, workflowID string }

// maxWorkflowRefs bounds the memory of the cache. A full one is emptied: what is missing is read
// again.
const maxWorkflowRefs = 10_000

func (c *workflowRefs) get(key refKey) (run.WorkflowRef, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ref, ok := c.entries[key]
	return ref, ok
}

func (c *workflowRefs) put(key refKey, ref run.WorkflowRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxWorkflowRefs {
		c.entries = map[refKey]run.WorkflowRef{}
	}
	c.entries[key] = ref
}

func (c *workflowRefs) remove(key refKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}

// CachedWorkflowRef implements run.Store. Only active workflows are cached, so a
// run is never rejected because of a stale entry.
func (s Runs) CachedWorkflowRef(ctx context.Context, workspaceID, workflowID string) (*run.WorkflowRef, error) {
	key := refKey{workspaceID, workflowID}
	if ref, ok := s.db.workflowRefs.get(key); ok {
		return &ref, nil
	}
	ref, err := s.WorkflowRef(ctx, workspaceID, workflowID)
	if err == nil && ref != nil && ref.State == workflow.Active && s.db.tx == nil {
		s.db.workflowRefs.put(key, *ref)
	}
	return ref, err
}

// WorkflowRef implements run.Store.
func (s Runs) WorkflowRef(ctx context.Context, workspaceID, workflowID string) (*run.WorkflowRef, error) {
	return readOne(ctx, s.db, `SELECT w.name, w.state, w.version, w.revision, s.plan FROM workflows w JOIN workspaces s ON s.id = w.workspace_id
		WHERE w.id = $1 AND w.workspace_id = $2 AND w.deleted_at IS NULL`, []any{workflowID, workspaceID},
		func(r database.Row) (h run.WorkflowRef, err error) {
			err = r.Scan(&h.Name, (*string)(&h.State), &h.Version, &h.Revision, (*string)(&h.Plan))
			return h, err
		})
}

// refUnchanged finds the workflow of a run if it and its workspace's plan have
// not changed since the run was decided on.
const refUnchanged = `FROM workflows w JOIN workspaces s ON s.id = w.workspace_id
	WHERE w.id = $1 AND w.workspace_id = $2 AND w.revision = $3 AND s.plan = $4 AND w.deleted_at IS NULL`

func refArgs(start run.Start) []any {
	return []any{start.Run.WorkflowID, start.Run.WorkspaceID, start.Revision, string(start.Plan)}
}

// expectRef makes the transaction fail with ErrUnexpected if the workflow of a
// run has changed.
func expectRef(tx *transaction, start run.Start) error {
	if err := lockRef(tx, start); err != nil {
		return err
	}
	return tx.Expect(`SELECT w.id `+refUnchanged, refArgs(start)...)
}

func sameRef(tx *transaction, start run.Start) (bool, error) {
	if err := lockRef(tx, start); err != nil {
		return false, err
	}
	unchanged, err := database.Number(tx, `SELECT count(*) `+refUnchanged, refArgs(start)...)
	if unchanged == 0 {
		tx.db.workflowRefs.remove(refKey{start.Run.WorkspaceID, start.Run.WorkflowID})
	}
	return unchanged == 1, err
}

// sameRefs is sameRef for several runs of one workflow. They were decided on one
// after the other, so it also checks that all used the same revision and plan.
func sameRefs(tx *transaction, starts []run.Start) (bool, error) {
	first := starts[0]
	if slices.ContainsFunc(starts, func(o run.Start) bool { return o.Revision != first.Revision || o.Plan != first.Plan }) {
		tx.db.workflowRefs.remove(refKey{first.Run.WorkspaceID, first.Run.WorkflowID})
		return false, nil
	}
	return sameRef(tx, first)
}

func lockRef(tx *transaction, start run.Start) error {
	return tx.Lock(database.Lock{Kind: database.LockWorkflow, Key: start.Run.WorkflowID, Shared: true})
}
