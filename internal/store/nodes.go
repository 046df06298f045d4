package store

import (
	"context"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/runqueue"
)

// RunsByNode implements node.Store.
func (s Runs) RunsByNode(ctx context.Context, workspaceID string) (map[string]int, error) {
	var runs map[string]int
	err := s.db.read(ctx, func(c database.Conn) (err error) {
		runs, err = runqueue.CountByNode(c, workspaceID)
		return err
	})
	return runs, err
}
