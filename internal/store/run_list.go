package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
)

// AllRuns implements run.Store. Every list is one range of one index, walked
// from its newest end; what no index knows is compared here, row by row, so that
// the page knows how far it has looked.
func (s *Store) AllRuns(ctx context.Context, workspaceID string, filter run.Filter, page paging.Request) (paging.Page[run.Listed], error) {
	from, below := filter.Span()
	args := []any{workspaceID, min(below, before(page.After)), from, maxLooked}
	statement := allRuns(filter, &args)
	var found paging.Page[run.Listed]
	err := s.read(ctx, func(c Conn) (err error) {
		found, err = walk(c, statement, args, page.Limit, func(l run.Listed) string { return l.ID }, func(r Row) (run.Listed, bool, error) {
			item, deleted, err := scanListed(r)
			return item, !deleted && filter.Matches(item), err
		})
		return err
	})
	return found, err
}

// allRuns chooses the index to walk. The outer joins keep the walk on the side
// of the runs, whatever the database thinks of the size of the tables. Beside a
// workflow the workspace is asked for in a place where it cannot draw the walk
// to its own index.
func allRuns(filter run.Filter, args *[]any) string {
	const (
		columns = `SELECT r.id, r.workflow_id, r.status, r.started_at, r.finished_at, r.trigger_type, r.draft, r.error_code, r.error_text, r.error_step, w.name, w.deleted_at FROM `
		runs    = `runs r LEFT JOIN workflows w ON w.id = r.workflow_id WHERE r.id < $2 AND r.id >= $3 AND `
		queue   = `run_queue q LEFT JOIN runs r ON r.id = q.run_id LEFT JOIN workflows w ON w.id = q.workflow_id WHERE q.run_id < $2 AND q.run_id >= $3 AND `
		own     = ` AND EXISTS (SELECT 1 FROM workflows o WHERE o.id = $5 AND o.workspace_id = $1)`
		newest  = ` ORDER BY r.id DESC LIMIT $4`
		queued  = ` ORDER BY q.run_id DESC LIMIT $4`
	)
	if filter.WorkflowID != "" {
		*args = append(*args, filter.WorkflowID)
		switch filter.Status {
		case "":
			return columns + runs + `r.workflow_id = $5` + own + newest
		case run.Running:
			return columns + queue + `q.workflow_id = $5` + listed("q.workflow_id") + own + queued
		}
		*args = append(*args, string(filter.Status))
		return columns + runs + `r.workflow_id = $5 AND r.status = $6 AND r.status <> 'running'` + own + newest
	}
	switch filter.Status {
	case run.Running:
		return columns + queue + `q.workspace_id = $1` + listed("q.workspace_id") + queued
	case run.Failed, run.Cancelled:
		*args = append(*args, string(filter.Status))
		return columns + runs + `r.workspace_id = $1 AND r.status = $5 AND r.status IN ('failed', 'cancelled')` + newest
	}
	return columns + runs + `r.workspace_id = $1` + newest
}

func scanListed(row Row) (l run.Listed, deleted bool, err error) {
	var (
		failure   run.Failure
		deletedAt *time.Time
	)
	err = row.Scan(&l.ID, &l.WorkflowID, (*string)(&l.Status), &l.StartedAt, &l.FinishedAt, &l.Trigger, &l.Draft,
		&failure.Code, &failure.Message, &failure.StepID, &l.WorkflowName, &deletedAt)
	if failure.Code != "" {
		l.Error = &failure
	}
	return l, deletedAt != nil, err
}

// runExists tells whether a workspace has a run that can be read.
func runExists(c Conn, workspaceID, runID string) (bool, error) {
	n, err := number(c, `SELECT count(*) FROM runs r JOIN workflows w ON w.id = r.workflow_id AND w.deleted_at IS NULL
		WHERE r.id = $1 AND r.workspace_id = $2`, runID, workspaceID)
	return n == 1, err
}

// Steps implements run.Store. There is no index on seq: it would cost every
// step, and only a run's own rows are sorted, at most 50,000 of them and without
// their bodies. Those of a block are a range of the primary key.
func (s *Store) Steps(ctx context.Context, workspaceID, runID string, filter run.StepFilter, page paging.Request) (paging.Page[run.Step], bool, error) {
	after, err := strconv.Atoi(page.After)
	if err != nil {
		after = -1 // before the first
	}
	statement := `SELECT ` + stepColumns + `, NULL AS input, NULL AS output, NULL AS answer
		FROM steps WHERE run_id = $1 AND seq > $2`
	args := []any{runID, after, page.Limit + 1}
	if filter.Status != "" {
		args = append(args, string(filter.Status))
		statement += fmt.Sprintf(` AND status = $%d`, len(args))
	}
	if filter.Block != "" {
		// "\" comes after "[". A step inside a round has one dot more than its
		// block, one further inside has more.
		args = append(args, filter.Block+`[`, filter.Block+`\`, strings.Count(filter.Block, ".")+1)
		statement += fmt.Sprintf(` AND path >= $%d AND path < $%d AND length(path) - length(replace(path, '.', '')) = $%d`,
			len(args)-2, len(args)-1, len(args))
	}
	var (
		steps  []run.Step
		exists bool
	)
	err = s.read(ctx, func(c Conn) (err error) {
		if exists, err = runExists(c, workspaceID, runID); err != nil || !exists {
			return err
		}
		steps, err = list(c, statement+` ORDER BY seq LIMIT $3`, args, scanStep)
		return err
	})
	return paging.Cut(steps, page.Limit, func(s run.Step) string { return strconv.Itoa(s.Seq) }), exists, err
}

// RoundSteps implements run.Store: a range of the primary key, without bodies.
func (s *Store) RoundSteps(ctx context.Context, workspaceID, runID, block string) (*run.RoundSteps, error) {
	var found *run.RoundSteps
	err := s.read(ctx, func(c Conn) error {
		exists, err := runExists(c, workspaceID, runID)
		if err != nil || !exists {
			return err
		}
		step, err := one(c, selectStep+`WHERE run_id = $1 AND path = $2`, []any{runID, block}, scanStep)
		if err != nil || step == nil {
			return err
		}
		steps, err := list(c, selectSlimStep+`WHERE run_id = $1 AND path >= $2 AND path < $3
			AND length(path) - length(replace(path, '.', '')) = $4`,
			[]any{runID, block + `[`, block + `\`, strings.Count(block, ".") + 1}, scanStep)
		found = &run.RoundSteps{Block: *step, Steps: steps}
		return err
	})
	return found, err
}

// pathsAtOnce is how many steps a statement asks for: databases bound how many
// parameters it has, and many of them are slow to bind.
const pathsAtOnce = 100

// StepsAt implements run.Store.
func (s *Store) StepsAt(ctx context.Context, workspaceID, runID string, paths []string) ([]run.Step, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	var steps []run.Step
	err := s.read(ctx, func(c Conn) error {
		steps = nil
		exists, err := runExists(c, workspaceID, runID)
		if err != nil || !exists {
			return err
		}
		for some := range slices.Chunk(paths, pathsAtOnce) {
			found, err := stepsAt(c, runID, some)
			if err != nil {
				return err
			}
			steps = append(steps, found...)
		}
		slices.SortFunc(steps, func(a, b run.Step) int { return cmp.Compare(a.Seq, b.Seq) })
		return nil
	})
	return steps, err
}

func stepsAt(c Conn, runID string, paths []string) ([]run.Step, error) {
	args, places := []any{runID}, make([]string, len(paths))
	for i, path := range paths {
		args = append(args, path)
		places[i] = fmt.Sprintf("$%d", len(args))
	}
	return list(c, selectStep+`WHERE run_id = $1 AND path IN (`+strings.Join(places, ", ")+`)`, args, scanStep)
}

// Step implements run.Store.
func (s *Store) Step(ctx context.Context, workspaceID, runID, path string) (*run.StepDetail, bool, error) {
	var (
		detail *run.StepDetail
		exists bool
	)
	err := s.read(ctx, func(c Conn) (err error) {
		if exists, err = runExists(c, workspaceID, runID); err != nil || !exists {
			return err
		}
		step, err := one(c, selectStep+`WHERE run_id = $1 AND path = $2`, []any{runID, path}, scanStep)
		if err != nil || step == nil {
			return err
		}
		attempts, err := list(c, selectAttempt+`WHERE run_id = $1 AND path = $2 ORDER BY attempt`, []any{runID, path}, scanAttempt)
		detail = &run.StepDetail{Step: *step, Attempts: attempts}
		return err
	})
	return detail, exists, err
}
