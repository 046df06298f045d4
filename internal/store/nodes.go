package store

import (
	"context"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/runqueue"
)

// RunsByNode implements node.Store.
func (s Runs) RunsByNode(ctx context.Context, workspaceID string) (map[string]int, error) {
	runs := map[string]int{}
	err := s.db.read(ctx, func(c database.Conn) error {
		return c.Query(`SELECT node, count(*) FROM run_queue WHERE workspace_id = $1`+runqueue.OwnedByNode+runqueue.UseIndex("workspace_id")+runqueue.NotDeleted+` GROUP BY node`,
			[]any{workspaceID}, func(r database.Row) error {
				var node string
				var n int
				err := r.Scan(&node, &n)
				runs[node] = n
				return err
			})
	})
	return runs, err
}
