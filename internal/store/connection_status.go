package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/event"
)

// SetConnectionStatus implements connection.Store.
func (s Connections) SetConnectionStatus(
	ctx context.Context, workspaceID, id string, epoch int64, status connection.Status, problem string, events ...event.Event,
) (changed bool, err error) {
	err = s.db.write(ctx, func(tx *transaction) error {
		n, err := tx.Exec(`UPDATE connections SET status = $1, problem = $2
			WHERE id = $3 AND workspace_id = $4 AND epoch = $5 AND status <> 'needs_reconnect'`,
			string(status), Text(problem), id, workspaceID, epoch)
		if changed = n == 1; err != nil || !changed {
			return err
		}
		tx.addEvents(events...)
		return nil
	})
	return changed, err
}

// EndingConnections implements connection.EndingStore.
func (s Connections) EndingConnections(ctx context.Context, now time.Time, limit int) ([]connection.Connection, error) {
	return readList(ctx, s.db, connectionRows.selects()+`WHERE warn_at <= $1 AND status <> 'needs_reconnect' ORDER BY warn_at LIMIT $2`, []any{now, limit}, connectionRows.scan)
}

// WarnConnection implements connection.EndingStore.
func (s Connections) WarnConnection(ctx context.Context, c connection.Connection, warning event.Event) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (warned bool, err error) {
		n, err := tx.Exec(`UPDATE connections SET warn_at = NULL WHERE id = $1 AND workspace_id = $2 AND epoch = $3 AND warn_at IS NOT NULL AND status <> 'needs_reconnect'`,
			c.ID, c.WorkspaceID, c.Epoch)
		if warned = n == 1; err != nil || !warned {
			return warned, err
		}
		tx.addEvents(warning)
		return warned, nil
	})
}

// ClaimRenewal implements connection.Store.
func (s Connections) ClaimRenewal(ctx context.Context, claim connection.Claim) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (bool, error) {
		return oneRow(tx.Exec(`UPDATE connections SET renewing_node = $1, renewing_to = $2 WHERE id = $3 AND workspace_id = $4 AND epoch = $5 AND (status <> 'needs_reconnect' OR $7)
			AND (renewing_to IS NULL OR renewing_to <= $6 OR renewing_node = $1 AND renewing_to = $8 OR `+s.db.queue.NodeIsGone("renewing_node", "$1")+`)`,
			claim.Node, claim.Until, claim.ID, claim.WorkspaceID, claim.Epoch, claim.At, claim.Broken, claim.Extends))
	})
}

// ReleaseRenewal implements connection.Store.
func (s Connections) ReleaseRenewal(ctx context.Context, claim connection.Claim) error {
	return s.db.write(ctx, func(tx *transaction) error {
		return tx.Do(`UPDATE connections SET renewing_to = NULL WHERE id = $1 AND workspace_id = $2 AND renewing_node = $3 AND renewing_to = $4`,
			claim.ID, claim.WorkspaceID, claim.Node, claim.Until)
	})
}

// MarkConnectionsUsed implements connection.Store.
func (s Connections) MarkConnectionsUsed(ctx context.Context, used map[string]time.Time) error {
	return s.db.write(ctx, func(tx *transaction) error {
		for _, id := range slices.Sorted(maps.Keys(used)) { // in order, so that nodes do not deadlock
			if err := tx.Do(`UPDATE connections SET last_used_at = $1 WHERE id = $2 AND (last_used_at IS NULL OR last_used_at < $1)`, used[id], id); err != nil {
				return err
			}
		}
		return nil
	})
}
