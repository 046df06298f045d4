package store

import (
	"context"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
)

// These leave out the large columns, because clients that follow a run read it
// repeatedly.
const (
	selectSlimRun  = `SELECT ` + runColumns + `, NULL AS payload, NULL AS files, NULL AS headers, NULL AS query, w.name` + fromRuns
	selectSlimStep = `SELECT ` + stepColumns + `, NULL AS input, NULL AS output, NULL AS answer, NULL AS state, NULL AS input_files, NULL AS output_files, NULL AS answer_files FROM steps `
)

// RunProgress implements run.Store.
func (s Runs) RunProgress(ctx context.Context, workspaceID, id string) (*run.Progress, error) {
	return view(ctx, s.db, func(c database.Conn) (progress *run.Progress, err error) {
		found, err := database.One(c, `SELECT r.status, COALESCE((SELECT max(rev) FROM steps WHERE run_id = r.id), -1)`+fromRuns+`
			WHERE r.id = $1 AND r.workspace_id = $2`, []any{id, workspaceID}, func(r database.Row) (p run.Progress, err error) {
			err = r.Scan((*string)(&p.Status), &p.Rev)
			return p, err
		})
		if progress = found; err != nil || found == nil {
			return progress, err
		}
		progress.Open, err = database.List(c, selectSlimStep+`WHERE run_id = $1 AND status IN ('running', 'waiting')`, []any{id}, scanStep)
		return progress, err
	})
}

// RunChanges implements run.Store. There is no index on the revisions of steps,
// since every step would pay for it. It scans the steps of the one run instead.
func (s Runs) RunChanges(ctx context.Context, workspaceID, id string, after run.Position, limit int) (*run.Changes, error) {
	return view(ctx, s.db, func(c database.Conn) (changes *run.Changes, err error) {
		found, err := database.One(c, selectSlimRun+`WHERE r.id = $1 AND r.workspace_id = $2`, []any{id, workspaceID}, scanRun)
		if err != nil || found == nil {
			return changes, err
		}
		changes = &run.Changes{Detail: run.Detail{Run: found.Run}}
		lines, err := changedLines(c, id, after, limit+1)
		if err != nil {
			return changes, err
		}
		steps, err := changedSteps(c, id, after, limit+1)
		if err != nil {
			return changes, err
		}
		changes.List, changes.More = run.Merge(lines, steps, limit)
		state := runqueue.ReadState(s.db.queue, id, &changes.Detail)
		return changes, c.Query(state.Statement, state.Args, state.Each)
	})
}

func changedLines(c database.Conn, runID string, after run.Position, limit int) ([]run.Change, error) {
	return database.List(c, selectLine+`WHERE run_id = $1 AND (rev, line) > ($2, $3) ORDER BY rev, line LIMIT $4`,
		[]any{runID, after.Rev, after.Line, limit}, func(r database.Row) (run.Change, error) {
			l, err := scanLine(r)
			return run.WrittenLine(l.LogLine, l.rev, l.line), err
		})
}

// mayHaveAttempts reports whether a step can have earlier attempts. A cancelled
// step may have been waiting for its second one.
func mayHaveAttempts(s run.Step) bool {
	return s.Attempt > 1 || s.Status == run.StepWaiting || s.Status == run.StepCancelled
}

func changedSteps(c database.Conn, runID string, after run.Position, limit int) ([]run.Change, error) {
	steps, err := database.List(c, selectSlimStep+`WHERE run_id = $1 AND (rev, seq) > ($2, $3) ORDER BY rev, seq LIMIT $4`,
		[]any{runID, after.Rev, after.Seq, limit}, scanStep)
	if err != nil {
		return nil, err
	}
	changed := make([]run.Change, len(steps))
	for i, step := range steps {
		var attempts []run.Attempt
		if mayHaveAttempts(step) {
			attempts, err = database.List(c, selectAttempt+`WHERE run_id = $1 AND path = $2 ORDER BY attempt`, []any{runID, step.Path}, scanAttempt)
			if err != nil {
				return nil, err
			}
		}
		changed[i] = run.ChangedStep(step, attempts)
	}
	return changed, nil
}
