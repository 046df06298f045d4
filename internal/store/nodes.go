package store

import (
	"context"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/runqueue"
)

// RunsByNode implements node.Store.
func (s Runs) RunsByNode(ctx context.Context, workspaceID string) (map[string]int, error) {
	return view(ctx, s.db, func(c database.Conn) (map[string]int, error) { return runqueue.CountByNode(c, workspaceID) })
}
