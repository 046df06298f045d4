package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Activities implements workflow.Store. The latest runs of each workflow are at
// the end of a range of one index, so the cost does not depend on the number of
// runs.
func (s Workflows) Activities(ctx context.Context, workspaceID string, ids []string) (map[string]workflow.Activity, error) {
	found := make(map[string]workflow.Activity, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	args := []any{workspaceID}
	for _, id := range ids {
		args = append(args, id)
	}
	err := s.db.read(ctx, func(c database.Conn) error {
		clear(found)
		if err := loadTriggers(c, found, args); err != nil {
			return err
		}
		return recentRuns(c, found, args)
	})
	return found, err
}

// loadTriggers adds the triggers of workflows. The arguments are the workspace and the
// ids of the workflows.
func loadTriggers(c database.Conn, found map[string]workflow.Activity, args []any) error {
	return c.Query(`SELECT workflow_id, trigger_id, type, next_at FROM triggers
		WHERE workflow_id IN (`+database.Placeholders(2, len(args)-1)+`) AND workspace_id = $1 ORDER BY workflow_id, trigger_id`, args, func(r database.Row) error {
		var (
			id, triggerID, kind string
			nextAt              *time.Time
		)
		if err := r.Scan(&id, &triggerID, &kind, &nextAt); err != nil {
			return err
		}
		activity, nextAt := found[id], workflow.DueAt(kind, nextAt)
		activity.Triggers = append(activity.Triggers, workflow.TriggerRef{ID: triggerID, Type: kind})
		if nextAt != nil && (activity.NextAt == nil || nextAt.Before(*activity.NextAt)) {
			activity.NextAt = nextAt
		}
		found[id] = activity
		return nil
	})
}

func recentRuns(c database.Conn, found map[string]workflow.Activity, args []any) error {
	const columns = `workflow_id, id, status, draft, started_at, finished_at`
	parts := make([]string, len(args)-1)
	for i := range parts {
		parts[i] = fmt.Sprintf(`SELECT * FROM (SELECT %s FROM runs WHERE workflow_id = $%d ORDER BY id DESC LIMIT %d) r%d
			WHERE EXISTS (SELECT 1 FROM workflows w WHERE w.id = r%d.workflow_id AND w.workspace_id = $1)`, columns, i+2, workflow.Recent, i, i)
	}
	return c.Query(strings.Join(parts, ` UNION ALL `), args, func(r database.Row) error {
		var (
			id  string
			one workflow.RecentRun
		)
		if err := r.Scan(&id, &one.ID, &one.Status, &one.Draft, &one.StartedAt, &one.FinishedAt); err != nil {
			return err
		}
		activity := found[id]
		activity.Runs = append(activity.Runs, one)
		found[id] = activity
		return nil
	})
}
