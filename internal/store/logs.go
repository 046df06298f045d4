package store

import (
	"context"
	"fmt"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
)

var stepLogsTable = Table{Name: "step_logs", Key: "run_id rev line", Text: "run_id path level message", Int: "rev line attempt at"}

func insertLog(tx *transaction, runID string, rev, line int, l run.LogLine) error {
	return tx.Do(`INSERT INTO step_logs (run_id, rev, line, path, attempt, at, level, message) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (run_id, rev, line) DO NOTHING`, runID, rev, line, l.Path, l.Attempt, l.At, l.Level, l.Message)
}

// Logs implements run.Store.
func (s Runs) Logs(ctx context.Context, workspaceID, runID, path string, page paging.Request) (paging.Page[run.LogLine], bool, error) {
	var rev, line int
	if page.After == "" {
		rev = -1
	} else if _, err := fmt.Sscanf(page.After, "%d.%d", &rev, &line); err != nil {
		return paging.Page[run.LogLine]{}, false, err
	}
	var (
		lines  []placedLine
		exists bool
	)
	err := s.db.read(ctx, func(c database.Conn) (err error) {
		if exists, err = runExists(c, workspaceID, runID); err != nil || !exists {
			return err
		}
		lines, err = database.List(c, selectLine+`WHERE run_id = $1 AND (rev, line) > ($2, $3) AND ($4 = '' OR path = $4) ORDER BY rev, line LIMIT $5`,
			[]any{runID, rev, line, path, page.Limit + 1}, scanLine)
		return err
	})
	cut := paging.Cut(lines, page.Limit, func(l placedLine) string { return fmt.Sprintf("%d.%d", l.rev, l.line) })
	out := paging.Page[run.LogLine]{Next: cut.Next}
	for _, l := range cut.Items {
		out.Items = append(out.Items, l.LogLine)
	}
	return out, exists, err
}

type placedLine struct {
	run.LogLine
	rev, line int
}

const selectLine = `SELECT rev, line, path, attempt, at, level, message FROM step_logs `

func scanLine(r database.Row) (l placedLine, err error) {
	err = r.Scan(&l.rev, &l.line, &l.Path, &l.Attempt, &l.At, &l.Level, &l.Message)
	return l, err
}
