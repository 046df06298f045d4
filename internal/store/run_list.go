package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
)

// AllRuns implements run.Store. Each list scans one range of one index, newest
// first. Conditions without an index are checked here, row by row, so that the
// page knows how far it has scanned.
func (s Runs) AllRuns(ctx context.Context, workspaceID string, filter run.Filter, page paging.Request) (paging.Page[run.Listed], error) {
	from, below := filter.Span()
	args := []any{workspaceID, min(below, before(page.After)), from, maxScanned}
	statement := s.listStatement(filter, &args)
	var found paging.Page[run.Listed]
	err := s.db.read(ctx, func(c database.Conn) (err error) {
		found, err = scanPage(c, statement, args, page.Limit, func(l run.Listed) string { return l.ID }, func(r database.Row) (run.Listed, bool, error) {
			item, seen, err := scanListed(r)
			wanted := !seen.deleted && filter.Matches(item) && (filter.Waiting == nil || filter.Waits(item, seen.waits) == *filter.Waiting)
			return item, wanted, err
		})
		return err
	})
	if err == nil {
		err = s.addWaiting(ctx, filter, &found)
	}
	return found, err
}

// listStatement chooses the index to scan. The outer joins make the database
// start from the runs, whatever its statistics say about the sizes of the tables.
// If there is a filter on the workflow, the condition on the workspace is in a
// subquery, where it cannot attract the planner to its own index. Whether a run
// waits is read only if the filter needs it.
func (s Runs) listStatement(filter run.Filter, args *[]any) string {
	const (
		columns = `SELECT r.id, r.workflow_id, r.status, r.started_at, r.finished_at, r.trigger_type, r.draft, r.error_code, r.error_text, r.error_step,
			r.started_by_type, r.started_by_id, r.started_by_name, w.name, w.deleted_at, `
		runs   = ` FROM runs r LEFT JOIN workflows w ON w.id = r.workflow_id WHERE r.id < $2 AND r.id >= $3 AND `
		queue  = ` FROM run_queue q LEFT JOIN runs r ON r.id = q.run_id LEFT JOIN workflows w ON w.id = q.workflow_id WHERE q.run_id < $2 AND q.run_id >= $3 AND `
		own    = ` AND EXISTS (SELECT 1 FROM workflows o WHERE o.id = $5 AND o.workspace_id = $1)`
		newest = ` ORDER BY r.id DESC LIMIT $4`
		// Row values, so that only the index on both columns has this range and
		// order. With separate columns SQLite may prefer to scan the runs of all
		// workspaces in a time span.
		byWorkspace = ` FROM runs r LEFT JOIN workflows w ON w.id = r.workflow_id
			WHERE (r.workspace_id, r.id) < ($1, $2) AND (r.workspace_id, r.id) >= ($1, $3) ORDER BY r.workspace_id DESC, r.id DESC LIMIT $4`
		queued = ` ORDER BY q.run_id DESC LIMIT $4`
	)
	waiting := `NULL`
	if filter.Waiting != nil {
		waiting = `CASE WHEN r.status = 'running' THEN (SELECT ` + s.waitingCondition() + ` FROM run_queue q WHERE q.run_id = r.id) END`
	}
	fromRuns, fromQueue := columns+waiting+runs, columns+s.waitingCondition()+queue
	if filter.WorkflowID != "" {
		*args = append(*args, filter.WorkflowID)
		switch filter.Status {
		case "":
			return fromRuns + `r.workflow_id = $5` + own + newest
		case run.Running:
			return fromQueue + `q.workflow_id = $5` + runqueue.UseIndex("q.workflow_id") + own + queued
		}
		*args = append(*args, string(filter.Status))
		return fromRuns + `r.workflow_id = $5 AND r.status = $6 AND r.status <> 'running'` + own + newest
	}
	switch filter.Status {
	case run.Running:
		return fromQueue + `q.workspace_id = $1` + runqueue.UseIndex("q.workspace_id") + queued
	case run.Failed, run.Cancelled:
		*args = append(*args, string(filter.Status))
		return fromRuns + `r.workspace_id = $1 AND r.status = $5 AND r.status IN ('failed', 'cancelled')` + newest
	}
	return columns + waiting + byWorkspace
}

// waitingCondition returns the condition that a run in the queue q waits.
func (s Runs) waitingCondition() string {
	return `NOT q.admitted OR q.waiting_step IS NOT NULL OR ` + s.db.queue.WaitsForNode()
}

// hiddenColumns are columns that are read for filtering but not returned.
type hiddenColumns struct {
	deleted bool // its workflow is deleted
	waits   bool
}

func scanListed(row database.Row) (l run.Listed, s hiddenColumns, err error) {
	var (
		failure   run.Failure
		by        run.Starter
		deletedAt *time.Time
	)
	err = row.Scan(&l.ID, &l.WorkflowID, (*string)(&l.Status), &l.StartedAt, &l.FinishedAt, &l.Trigger, &l.Draft,
		&failure.Code, &failure.Message, &failure.StepID, &by.Type, &by.ID, &by.Name, &l.WorkflowName, &deletedAt, &s.waits)
	if failure.Code != "" {
		l.Error = &failure
	}
	if by.ID != "" {
		l.StartedBy = &by
	}
	s.deleted = deletedAt != nil
	return l, s, err
}

// addWaiting fills in what the runs of a page wait for. It drops runs that no
// longer match the filter because they stopped or started waiting since the page
// was read.
func (s Runs) addWaiting(ctx context.Context, filter run.Filter, page *paging.Page[run.Listed]) error {
	if !slices.ContainsFunc(page.Items, func(l run.Listed) bool { return l.Status == run.Running }) {
		return nil
	}
	states := map[string]*run.WaitFacts{}
	err := s.db.readAll(ctx, func() []database.Query {
		var queries []database.Query
		for _, item := range page.Items {
			if item.Status == run.Running {
				states[item.ID] = &run.WaitFacts{}
				queries = append(queries, runqueue.ReadWait(s.db.queue, item.ID, states[item.ID]))
			}
		}
		return queries
	})
	if err != nil {
		return err
	}
	for i := range page.Items {
		item := &page.Items[i]
		if state := states[item.ID]; state != nil {
			state.Queued = filter.Waits(*item, state.Queued)
			item.Waiting = state.WaitingFor()
		}
	}
	if filter.Waiting != nil {
		page.Items = slices.DeleteFunc(page.Items, func(l run.Listed) bool { return (l.Waiting != nil) != *filter.Waiting })
	}
	return nil
}

// runExists reports whether a workspace has a run that can be read.
func runExists(c database.Conn, workspaceID, runID string) (bool, error) {
	n, err := database.Number(c, `SELECT count(*) FROM runs r JOIN workflows w ON w.id = r.workflow_id AND w.deleted_at IS NULL
		WHERE r.id = $1 AND r.workspace_id = $2`, runID, workspaceID)
	return n == 1, err
}

// Steps implements run.Store. There is no index on seq, since every step would
// pay for it. Only the rows of one run are sorted, at most 50,000 of them and
// without their bodies. Those of a block are a range of the primary key.
func (s Runs) Steps(ctx context.Context, workspaceID, runID string, filter run.StepFilter, page paging.Request) (paging.Page[run.Step], bool, error) {
	after, err := strconv.Atoi(page.After)
	if err != nil {
		after = -1 // before the first
	}
	statement := `SELECT ` + stepColumns + `, NULL AS input, NULL AS output, NULL AS answer, NULL AS state, NULL AS input_files, NULL AS output_files, NULL AS answer_files
		FROM steps WHERE run_id = $1 AND seq > $2`
	args := []any{runID, after, page.Limit + 1}
	if filter.Status != "" {
		args = append(args, string(filter.Status))
		statement += fmt.Sprintf(` AND status = $%d`, len(args))
	}
	if filter.Block != "" {
		// "\" sorts after "[". A step in a round has one more dot than its block;
		// one nested deeper has more.
		args = append(args, filter.Block+`[`, filter.Block+`\`, strings.Count(filter.Block, ".")+1)
		statement += fmt.Sprintf(` AND path >= $%d AND path < $%d AND length(path) - length(replace(path, '.', '')) = $%d`,
			len(args)-2, len(args)-1, len(args))
	}
	var (
		steps  []run.Step
		exists bool
	)
	err = s.db.read(ctx, func(c database.Conn) (err error) {
		if exists, err = runExists(c, workspaceID, runID); err != nil || !exists {
			return err
		}
		steps, err = database.List(c, statement+` ORDER BY seq LIMIT $3`, args, scanStep)
		return err
	})
	return paging.Cut(steps, page.Limit, func(s run.Step) string { return strconv.Itoa(s.Seq) }), exists, err
}

// RoundSteps implements run.Store: a range of the primary key, without bodies.
func (s Runs) RoundSteps(ctx context.Context, workspaceID, runID, block string) (*run.RoundSteps, error) {
	return view(ctx, s.db, func(c database.Conn) (found *run.RoundSteps, err error) {
		exists, err := runExists(c, workspaceID, runID)
		if err != nil || !exists {
			return found, err
		}
		step, err := database.One(c, selectStep+`WHERE run_id = $1 AND path = $2`, []any{runID, block}, scanStep)
		if err != nil || step == nil {
			return found, err
		}
		steps, err := database.List(c, selectSlimStep+`WHERE run_id = $1 AND path >= $2 AND path < $3
			AND length(path) - length(replace(path, '.', '')) = $4`,
			[]any{runID, block + `[`, block + `\`, strings.Count(block, ".") + 1}, scanStep)
		found = &run.RoundSteps{Block: *step, Steps: steps}
		return found, err
	})
}

// pathsAtOnce is the number of steps that one statement reads, because databases limit the number
// of parameters, and many are slow to bind.
const pathsAtOnce = 100

// StepsAt implements run.Store.
func (s Runs) StepsAt(ctx context.Context, workspaceID, runID string, paths []string) ([]run.Step, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	return view(ctx, s.db, func(c database.Conn) (steps []run.Step, err error) {
		exists, err := runExists(c, workspaceID, runID)
		if err != nil || !exists {
			return steps, err
		}
		for some := range slices.Chunk(paths, pathsAtOnce) {
			found, err := stepsAt(c, runID, some)
			if err != nil {
				return steps, err
			}
			steps = append(steps, found...)
		}
		slices.SortFunc(steps, func(a, b run.Step) int { return cmp.Compare(a.Seq, b.Seq) })
		return steps, nil
	})
}

func stepsAt(c database.Conn, runID string, paths []string) ([]run.Step, error) {
	args := []any{runID}
	for _, path := range paths {
		args = append(args, path)
	}
	return database.List(c, selectStep+`WHERE run_id = $1 AND path IN (`+database.Placeholders(2, len(paths))+`)`, args, scanStep)
}

// Step implements run.Store.
func (s Runs) Step(ctx context.Context, workspaceID, runID, path string) (*run.StepDetail, bool, error) {
	var (
		detail *run.StepDetail
		exists bool
	)
	err := s.db.read(ctx, func(c database.Conn) (err error) {
		if exists, err = runExists(c, workspaceID, runID); err != nil || !exists {
			return err
		}
		step, err := database.One(c, selectStep+`WHERE run_id = $1 AND path = $2`, []any{runID, path}, scanStep)
		if err != nil || step == nil {
			return err
		}
		attempts, err := database.List(c, selectAttempt+`WHERE run_id = $1 AND path = $2 ORDER BY attempt`, []any{runID, path}, scanAttempt)
		detail = &run.StepDetail{Step: *step, Attempts: attempts}
		return err
	})
	return detail, exists, err
}
