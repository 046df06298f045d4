package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/runqueue"
	"github.com/stepmill/stepmill/internal/usage"
)

// Usage implements usage.Store.
type Usage struct{ db *DB }

var usageTable = Table{Name: "usage", Key: "workspace_id date", Text: "workspace_id date", Int: "requests runs_started runs_succeeded runs_failed runs_cancelled"}

// AddUsage implements usage.Store.
func (s Usage) AddUsage(ctx context.Context, counts map[usage.Key]usage.Day) error {
	return s.db.write(ctx, func(tx *transaction) error {
		byWorkspace := func(a, b usage.Key) int {
			return cmp.Or(strings.Compare(a.WorkspaceID, b.WorkspaceID), strings.Compare(a.Date, b.Date))
		}
		for _, key := range slices.SortedFunc(maps.Keys(counts), byWorkspace) { // consistent lock order
			d := counts[key]
			if err := tx.Do(`INSERT INTO usage
				(workspace_id, date, requests, runs_started, runs_succeeded, runs_failed, runs_cancelled)
				VALUES ($1, $2, $3, $4, $5, $6, $7)
				ON CONFLICT (workspace_id, date) DO UPDATE SET
				requests = usage.requests + excluded.requests, runs_started = usage.runs_started + excluded.runs_started,
				runs_succeeded = usage.runs_succeeded + excluded.runs_succeeded, runs_failed = usage.runs_failed + excluded.runs_failed,
				runs_cancelled = usage.runs_cancelled + excluded.runs_cancelled`,
				key.WorkspaceID, key.Date, d.Requests, d.RunsStarted, d.RunsSucceeded, d.RunsFailed, d.RunsCancelled); err != nil {
				return err
			}
		}
		return nil
	})
}

// UsageDays implements usage.Store.
func (s Usage) UsageDays(ctx context.Context, workspaceID, since string) ([]usage.Day, error) {
	return readList(ctx, s.db, `SELECT date, requests, runs_started, runs_succeeded, runs_failed, runs_cancelled FROM usage
		WHERE workspace_id = $1 AND date >= $2 ORDER BY date DESC`, []any{workspaceID, since}, func(r database.Row) (d usage.Day, err error) {
		err = r.Scan(&d.Date, &d.Requests, &d.RunsStarted, &d.RunsSucceeded, &d.RunsFailed, &d.RunsCancelled)
		return d, err
	})
}

// UsageCurrent implements usage.Store.
func (s Usage) UsageCurrent(ctx context.Context, workspaceID string) (usage.Current, error) {
	return view(ctx, s.db, func(c database.Conn) (now usage.Current, err error) {
		if now.RunningRuns, err = runqueue.Count(c, workspaceID); err != nil {
			return now, err
		}
		if err := currentState(c, workspaceID, &now); err != nil {
			return now, err
		}
		files, err := fileUsage(c, workspaceID)
		if err != nil {
			return now, err
		}
		now.Files, now.StoredFileBytes = files.Files, files.Bytes+files.Uploading
		err = c.Query(`SELECT workflows, webhooks, api_keys, secrets, variables, variable_bytes, connections FROM workspaces WHERE id = $1`,
			[]any{workspaceID}, func(r database.Row) error {
				return r.Scan(&now.Workflows, &now.Webhooks, &now.APIKeys, &now.Secrets, &now.Variables, &now.VariableBytes, &now.Connections)
			})
		return now, err
	})
}
