package store

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/state"
	"github.com/stepmill/stepmill/internal/table"
)

// State implements state.Store.
type State struct{ db *DB }

var stateKeysTable = Table{Name: "state_keys", Key: "workspace_id workflow_id name", Text: "workspace_id workflow_id name value files", Int: "size expires_at created_at updated_at"}

const selectStateKey = `SELECT name, value, files, expires_at, created_at, updated_at FROM state_keys WHERE workspace_id = $1 AND workflow_id = $2 `

func scanStateKey(r database.Row) (k state.Key, err error) {
	var files filePointers
	if err := r.Scan(&k.Name, (*[]byte)(&k.Value), (*[]byte)(&files), &k.ExpiresAt, &k.CreatedAt, &k.UpdatedAt); err != nil {
		return k, err
	}
	return k, files.decode(&k.Files)
}

// stateKeyOf returns the row of a key, also if it has expired.
func stateKeyOf(c database.Conn, scope state.Scope, name string) (*state.Key, error) {
	return database.One(c, selectStateKey+`AND name = $3`, []any{scope.WorkspaceID, scope.WorkflowID, name}, scanStateKey)
}

func expired(k *state.Key, at time.Time) bool { return k.ExpiresAt != nil && !k.ExpiresAt.After(at) }

// GetKey implements state.Store.
func (s State) GetKey(ctx context.Context, scope state.Scope, name string) (*state.Key, error) {
	found, err := view(ctx, s.db, func(c database.Conn) (*state.Key, error) { return stateKeyOf(c, scope, name) })
	if err != nil || found == nil || expired(found, scope.At) {
		return nil, err
	}
	return found, nil
}

// StateKeys implements state.Store.
func (s State) StateKeys(ctx context.Context, scope state.Scope, page paging.Request) (paging.Page[state.Key], error) {
	found, err := readList(ctx, s.db, selectStateKey+`AND name > $3 AND (expires_at IS NULL OR expires_at > $4) ORDER BY name LIMIT $5`,
		[]any{scope.WorkspaceID, scope.WorkflowID, page.After, scope.At, page.Limit + 1}, scanStateKey)
	return paging.Cut(found, page.Limit, func(k state.Key) string { return k.Name }), err
}

// SetKey implements state.Store.
func (s State) SetKey(ctx context.Context, scope state.Scope, op state.Set) (state.Stored, error) {
	return inTransaction(ctx, s.db, scope, op, setKey)
}

// IncrementKey implements state.Store.
func (s State) IncrementKey(ctx context.Context, scope state.Scope, op state.Increment) (state.Stored, error) {
	return inTransaction(ctx, s.db, scope, op, incrementKey)
}

// DeleteKey implements state.Store.
func (s State) DeleteKey(ctx context.Context, scope state.Scope, name string) (bool, error) {
	return inTransaction(ctx, s.db, scope, name, deleteKey)
}

// keyTx is a transaction that changes one key. Like an operation on rows, it checks
// everything before it writes.
type keyTx struct {
	tx    *transaction
	scope state.Scope
	have  stateUsage
	// row is the row of the key, nil if there is none. live is nil as well if the key
	// has expired.
	row, live *state.Key
}

// openKey locks the keys of the workspace and reads one.
func openKey(tx *transaction, scope state.Scope, name string) (*keyTx, error) {
	have, err := lockState(tx, scope.WorkspaceID)
	if err != nil {
		return nil, err
	}
	if scope.WorkflowID != "" {
		n, err := database.Number(tx, `SELECT count(*) FROM workflows WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`, scope.WorkflowID, scope.WorkspaceID)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, state.NoWorkflow(scope.WorkflowID)
		}
	}
	k := &keyTx{tx: tx, scope: scope, have: have}
	if k.row, err = stateKeyOf(tx, scope, name); err != nil {
		return nil, err
	}
	if k.row != nil && !expired(k.row, scope.At) {
		k.live = k.row
	}
	return k, nil
}

func setKey(tx *transaction, scope state.Scope, op state.Set) (state.Stored, error) {
	k, err := openKey(tx, scope, op.Name)
	if err != nil {
		return state.Stored{}, err
	}
	if k.live != nil && op.IfAbsent {
		return state.Stored{Key: *k.live}, nil
	}
	if k.live != nil && op.KeepFiles {
		if op.Files, err = state.KeptFiles(*k.live, op.Value); err != nil {
			return state.Stored{}, err
		}
	}
	return k.put(state.Key{Name: op.Name, Value: op.Value, Files: op.Files, ExpiresAt: op.Expires})
}

func incrementKey(tx *transaction, scope state.Scope, op state.Increment) (state.Stored, error) {
	k, err := openKey(tx, scope, op.Name)
	if err != nil {
		return state.Stored{}, err
	}
	next := state.Key{Name: op.Name, ExpiresAt: op.Expires}
	if k.live != nil {
		next.ExpiresAt = k.live.ExpiresAt
	}
	if next.Value, err = state.Sum(k.live, op.By); err != nil {
		return state.Stored{}, err
	}
	return k.put(next)
}

func (k *keyTx) put(next state.Key) (state.Stored, error) {
	next.CreatedAt, next.UpdatedAt = k.scope.At, k.scope.At
	if k.live != nil {
		next.CreatedAt = k.live.CreatedAt
	}
	size := state.Size(next.Name, next.Value)
	growth := stateUsage{keys: 1, bytes: size}
	if k.row != nil {
		growth = stateUsage{bytes: size - state.Size(k.row.Name, k.row.Value)}
	}
	if err := k.makeRoom(growth); err != nil {
		return state.Stored{}, err
	}
	if err := k.holdFiles(next); err != nil {
		return state.Stored{}, err
	}
	files, err := pointersOrNil(next.Files)
	if err != nil {
		return state.Stored{}, err
	}
	err = k.tx.Do(`INSERT INTO state_keys (workspace_id, workflow_id, name, value, size, expires_at, created_at, updated_at, files) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (workspace_id, workflow_id, name) DO UPDATE SET value = excluded.value, size = excluded.size, expires_at = excluded.expires_at,
		created_at = excluded.created_at, updated_at = excluded.updated_at, files = excluded.files`,
		k.scope.WorkspaceID, k.scope.WorkflowID, next.Name, string(next.Value), size, database.TimeOrNil(next.ExpiresAt), next.CreatedAt, next.UpdatedAt, files)
	if err != nil {
		return state.Stored{}, err
	}
	return state.Stored{Key: next, Created: k.live == nil, Set: true}, addState(k.tx, k.scope.WorkspaceID, growth)
}

// holdFiles makes the key hold the files in its next value and no others.
func (k *keyTx) holdFiles(next state.Key) error {
	if len(next.Files) == 0 && (k.row == nil || len(k.row.Files) == 0) {
		return nil
	}
	ids, err := run.FileIDs(next.Value, next.Files)
	if err != nil {
		return err
	}
	return replaceFiles(k.tx, k.scope.WorkspaceID, file.HeldByKey(k.scope.WorkspaceID, k.scope.WorkflowID, next.Name), ids, k.scope.At)
}

// makeRoom returns a fault if the keys may not grow that much.
func (k *keyTx) makeRoom(growth stateUsage) error {
	limits := k.scope.Plan.Limits()
	switch {
	case growth.keys > 0 && k.have.keys+growth.keys > limits.StateKeys:
		return table.OverLimit(k.scope.Plan, "state_keys", limits.StateKeys)
	case growth.bytes > 0 && k.have.bytes+growth.bytes > limits.StoredBytes:
		return table.OverLimit(k.scope.Plan, "stored_bytes", limits.StoredBytes)
	}
	return nil
}

func deleteKey(tx *transaction, scope state.Scope, name string) (bool, error) {
	k, err := openKey(tx, scope, name)
	if err != nil || k.row == nil {
		return false, err
	}
	old, err := database.List(tx, selectOldKey+`workspace_id = $1 AND workflow_id = $2 AND name = $3`, []any{scope.WorkspaceID, scope.WorkflowID, name}, scanOldKey)
	if err != nil {
		return false, err
	}
	return k.live != nil, removeKeys(tx, scope.WorkspaceID, old, scope.At)
}

type oldKey struct {
	workspace, workflow, name string
	size                      int
	files                     *string
}

const selectOldKey = `SELECT workspace_id, workflow_id, name, size, files FROM state_keys WHERE `

func scanOldKey(r database.Row) (k oldKey, err error) {
	err = r.Scan(&k.workspace, &k.workflow, &k.name, &k.size, &k.files)
	return k, err
}

// PurgeKeys deletes up to limit expired keys of one workspace. It returns true if
// there may be more.
func (s State) PurgeKeys(ctx context.Context, now time.Time, limit int) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (more bool, err error) {
		first, err := database.One(tx, selectOldKey+`expires_at <= $1 ORDER BY expires_at LIMIT 1`, []any{now}, scanOldKey)
		if err != nil || first == nil {
			return more, err
		}
		more = true
		if _, err := lockState(tx, first.workspace); err != nil {
			return more, err
		}
		// The keys are read again under the lock: one may have been set anew. Those of
		// other workspaces are left to the next calls.
		old, err := database.List(tx, selectOldKey+`expires_at <= $1 ORDER BY expires_at LIMIT $2`, []any{now, limit}, scanOldKey)
		if err != nil {
			return more, err
		}
		old = slices.DeleteFunc(old, func(k oldKey) bool { return k.workspace != first.workspace })
		return more, removeKeys(tx, first.workspace, old, now)
	})
}

// removeKeys removes keys of a workspace whose state is locked.
func removeKeys(tx *transaction, workspaceID string, old []oldKey, now time.Time) error {
	var freed stateUsage
	for _, k := range old {
		if err := tx.Do(`DELETE FROM state_keys WHERE workspace_id = $1 AND workflow_id = $2 AND name = $3`, k.workspace, k.workflow, k.name); err != nil {
			return err
		}
		if k.files != nil {
			if err := dropHolder(tx, file.HeldByKey(k.workspace, k.workflow, k.name), now); err != nil {
				return err
			}
		}
		freed.keys--
		freed.bytes -= k.size
	}
	return addState(tx, workspaceID, freed)
}

// removeWorkflowKeys removes up to limit keys of a workflow and returns how many.
func removeWorkflowKeys(tx *transaction, workspaceID, workflowID string, limit int) (int, error) {
	if _, err := lockState(tx, workspaceID); err != nil {
		return 0, err
	}
	old, err := database.List(tx, selectOldKey+`workspace_id = $1 AND workflow_id = $2 LIMIT $3`,
		[]any{workspaceID, workflowID, limit}, scanOldKey)
	if err != nil {
		return 0, err
	}
	return len(old), removeKeys(tx, workspaceID, old, clock.Now())
}
