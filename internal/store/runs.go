package store

import (
	"context"
	"errors"

	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
)

// listed is true of every run in the queue, whose workspace or workflow the column
// is. Only who says so is offered the index on that column by PostgreSQL: while the
// queue seems empty to it, it takes such indexes for as good as the key of a run, and
// what has left the queue stays in them for a while.
func listed(column string) string { return ` AND ` + column + ` <> ''` }

// notDeleted is the condition that voids every lease of a deleted workflow at
// once.
const notDeleted = ` AND NOT EXISTS (SELECT 1 FROM workflows w WHERE w.id = run_queue.workflow_id AND w.deleted_at IS NOT NULL)`

// maxFresh bounds the payload of a run that is handed on in memory: many runs
// may queue there.
const maxFresh = 8 << 10

// StartRun implements run.Store.
func (s *Store) StartRun(ctx context.Context, start run.Start) (bool, error) {
	if s.aloneStart(start) && !nested(ctx) {
		started, err := s.writeRun(ctx, start.Run.ID, func(u *unit) error {
			if err := s.expectHead(u, start); err != nil {
				return err
			}
			return s.startRun(u, start)
		})
		if started || err != nil {
			return started, err
		}
	}
	started := false
	err := s.write(ctx, func(u *unit) error {
		var err error
		if started, err = s.sameHead(u, start); err != nil || !started {
			return err
		}
		if start.Fire != nil {
			if err := fire(u, start.Run, *start.Fire); err != nil {
				return err
			}
		}
		return s.startRun(u, start)
	})
	return started && err == nil, err
}

// startRun writes a run with its place in the queue and its event. When it may
// not start, nothing is written.
func (s *Store) startRun(u *unit, start run.Start) error {
	r := start.Run
	if r.Parent != nil {
		if err := mayStart(u, r); err != nil {
			return err
		}
	}
	turn, err := s.takePlace(u, start)
	if err != nil {
		return err
	}
	if err := insertRun(u, r); err != nil {
		return err
	}
	if start.Draft != nil {
		if err := insertDraft(u, r.ID, *start.Draft); err != nil {
			return err
		}
	}
	for _, step := range start.Steps {
		if err := upsertStep(u, r.ID, 0, step); err != nil {
			return err
		}
	}
	if err := s.enqueue(u, start, turn); err != nil {
		return err
	}
	u.record(start.Event)
	return nil
}

// StartRuns implements run.Store.
func (s *Store) StartRuns(ctx context.Context, all run.Starts) ([]string, error) {
	var started []string
	err := s.write(ctx, func(u *unit) error {
		started = nil
		same, err := s.sameHeads(u, all.Starts)
		if err != nil || !same {
			return err
		}
		refused := all.Refused
		for _, start := range all.Starts {
			switch err := s.startRun(u, start); {
			case errors.Is(err, run.ErrAtLimit):
				refused++
			case err != nil:
				return err
			default:
				started = append(started, start.Run.ID)
			}
		}
		if len(started) == 0 {
			return run.ErrAtLimit
		}
		fired := all.Fire
		if refused > 0 {
			fired.Idle = all.Left(refused)
		}
		last := all.Starts[0].Run
		last.ID = started[len(started)-1]
		return fire(u, last, fired)
	})
	if err != nil {
		return nil, err
	}
	return started, nil
}

// aloneStart tells that a start touches nothing but the new run, which stays
// here.
func (s *Store) aloneStart(start run.Start) bool {
	return start.Share == nil && start.Run.Parent == nil && len(start.Steps) == 0 && start.Fire == nil && (s.cluster == nil || start.Node != "")
}

// mayStart refuses the run of a step that was started before, or whose own run
// has ended: whoever asks may not know yet, and nobody would end it.
func mayStart(u *unit, r run.Run) error {
	if _, err := hold(u, r.Parent.RunID); err != nil {
		return err
	}
	there, err := number(u, `SELECT count(*) FROM runs WHERE id = $1`, r.ID)
	if err != nil {
		return err
	}
	if there == 1 {
		return run.ErrStarted
	}
	live, err := number(u, `SELECT count(*) FROM run_queue WHERE run_id = $1 AND workspace_id = $2`+notDeleted, r.Parent.RunID, r.WorkspaceID)
	if err == nil && live == 0 {
		err = run.ErrParentEnded
	}
	return err
}

// enqueue puts a new run into the queue: in the hands of its node, or waiting
// for its turn.
func (s *Store) enqueue(u *unit, start run.Start, turn bool) error {
	if s.cluster != nil {
		return s.enqueueInCluster(u, start, turn)
	}
	r := start.Run
	var node, wakeAt any
	switch {
	case !turn:
	case start.Node == "":
		wakeAt = r.StartedAt
	default:
		node = start.Node
	}
	var limit any
	if start.Share != nil {
		limit = start.Share.Limit
	}
	u.afterCommit(func() { s.accepted(start, turn) })
	return u.Do(`INSERT INTO run_queue (run_id, workspace_id, workflow_id, epoch, node, wake_at, share_key, share_limit, turn)
		VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8)`, r.ID, r.WorkspaceID, r.WorkflowID, node, wakeAt, orNil(r.ShareKey), limit, turn)
}

// accepted tells that a run was started, and whether it is for this node.
func (s *Store) accepted(start run.Start, here bool) {
	failpoint.Hit(failpoint.AfterAcceptCommit, start.Run.ID)
	s.notify.Started(start.Run.WorkspaceID)
	if !here {
		s.notify.HeldBack(start.Run.ID)
		return
	}
	s.notify.Wake(firstWake(start))
}

// firstWake is the wake-up of a new run. One that stays here carries the run
// with it.
func firstWake(start run.Start) run.Wake {
	r := start.Run
	wake := run.Wake{RunID: r.ID, WorkspaceID: r.WorkspaceID, WorkflowID: r.WorkflowID, Epoch: 1, At: r.StartedAt, Plan: start.Plan, Owned: start.Node != ""}
	if wake.Owned && r.Trigger.Size() <= maxFresh && len(start.Steps) == 0 {
		wake.Fresh = &run.Snapshot{Detail: run.Detail{Run: r}, WorkflowName: start.WorkflowName, Plan: start.Plan}
	}
	return wake
}

func insertRun(u *unit, r run.Run) error {
	var parent, step, waits any
	if r.Parent != nil {
		parent, step, waits = r.Parent.RunID, r.Parent.StepID, r.Parent.Waits
	}
	err := u.Do(`INSERT INTO runs (id, workspace_id, workflow_id, workflow_version, status, started_at, trigger_type, trigger_id, retry_of,
		parent_run, parent_step, parent_waits, depth, share_key, test, draft, payload, headers, query)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
		r.ID, r.WorkspaceID, r.WorkflowID, r.WorkflowVersion, string(r.Status), r.StartedAt, r.Trigger.Type, orNil(r.Trigger.ID), orNil(r.RetryOf),
		parent, step, waits, r.Depth, orNil(r.ShareKey), r.Trigger.Test, r.Draft, string(r.Trigger.Payload), orNil(string(r.Trigger.Headers)), orNil(string(r.Trigger.Query)))
	return err
}

const runColumns = `r.id, r.workspace_id, r.workflow_id, r.workflow_version, r.status, r.started_at, r.finished_at,
	r.trigger_type, r.trigger_id, r.error_code, r.error_text, r.error_step, r.retry_of,
	r.parent_run, r.parent_step, r.parent_waits, r.depth, r.share_key, r.test, r.draft`

const fromRuns = ` FROM runs r JOIN workflows w ON w.id = r.workflow_id AND w.deleted_at IS NULL `

const selectRun = `SELECT ` + runColumns + `, r.payload, r.headers, r.query, w.name` + fromRuns

type namedRun struct {
	run.Run
	workflowName string
}

func scanRun(row Row) (namedRun, error) {
	var (
		r                namedRun
		code, text, step string
		parent           run.Parent
	)
	err := row.Scan(&r.ID, &r.WorkspaceID, &r.WorkflowID, &r.WorkflowVersion, (*string)(&r.Status), &r.StartedAt, &r.FinishedAt,
		&r.Trigger.Type, &r.Trigger.ID, &code, &text, &step, &r.RetryOf,
		&parent.RunID, &parent.StepID, &parent.Waits, &r.Depth, &r.ShareKey, &r.Trigger.Test, &r.Draft,
		(*[]byte)(&r.Trigger.Payload), (*[]byte)(&r.Trigger.Headers), (*[]byte)(&r.Trigger.Query), &r.workflowName)
	if parent.RunID != "" {
		r.Parent = &parent
	}
	if code != "" {
		r.Error = &run.Failure{Code: code, Message: text, StepID: step}
	}
	return r, err
}

// Run implements run.Store.
func (s *Store) Run(ctx context.Context, workspaceID, id string) (*run.Detail, error) {
	var (
		found  []namedRun
		detail *run.Detail
	)
	err := s.readAll(ctx, func() []Query {
		detail = &run.Detail{}
		return []Query{
			into(&found, selectRun+`WHERE r.id = $1 AND r.workspace_id = $2`, []any{id, workspaceID}, scanRun),
			into(&detail.Steps, selectStep+ofRun, []any{id}, scanStep),
			into(&detail.Attempts, selectAttempt+`WHERE run_id = $1 ORDER BY path, attempt`, []any{id}, scanAttempt),
			s.queryPlace(id, detail),
		}
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	detail.Run = found[0].Run
	return detail, nil
}

// Head implements run.Store.
func (s *Store) Head(ctx context.Context, workspaceID, id string) (*run.Run, error) {
	var head *run.Run
	err := s.read(ctx, func(c Conn) error {
		found, err := one(c, selectRun+`WHERE r.id = $1 AND r.workspace_id = $2`, []any{id, workspaceID}, scanRun)
		if found != nil {
			head = &found.Run
		}
		return err
	})
	return head, err
}

// queryPlace asks where a run that is running stands among others.
func (s *Store) queryPlace(id string, d *run.Detail) Query {
	if s.cluster != nil {
		return Query{`SELECT NOT turn, crashes, parked OR slot AND node IS NULL FROM run_queue WHERE run_id = $1`, []any{id},
			func(r Row) error { return r.Scan(&d.HeldBack, &d.Crashes, &d.Queued) }}
	}
	return Query{`SELECT NOT turn, crashes FROM run_queue WHERE run_id = $1`, []any{id},
		func(r Row) error { return r.Scan(&d.HeldBack, &d.Crashes) }}
}

// ofRun are the steps of a run in their order.
const ofRun = `WHERE run_id = $1 ORDER BY seq`

const stepColumns = `path, seq, name, type, status, attempt, started_at, attempt_at, finished_at, wake_at, deadline, awaits, reason,
	error_code, error_text, error_step, rev`

const selectStep = `SELECT ` + stepColumns + `, input, output, answer FROM steps `

const selectAttempt = `SELECT path, attempt, started_at, finished_at, error_code, error_text FROM step_attempts `

func scanAttempt(r Row) (a run.Attempt, err error) {
	err = r.Scan(&a.Path, &a.Number, &a.StartedAt, &a.FinishedAt, &a.Error.Code, &a.Error.Message)
	a.Error.StepID = a.Path
	return a, err
}

func scanStep(row Row) (run.Step, error) {
	var (
		s              run.Step
		code, text, at string
	)
	err := row.Scan(&s.Path, &s.Seq, &s.Name, &s.Type, (*string)(&s.Status), &s.Attempt, &s.StartedAt, &s.AttemptAt, &s.FinishedAt, &s.WakeAt, &s.Deadline,
		(*string)(&s.Awaits), &s.Reason, &code, &text, &at, &s.Rev, (*[]byte)(&s.Input), (*[]byte)(&s.Output), (*[]byte)(&s.Answer))
	if code != "" {
		s.Error = &run.Failure{Code: code, Message: text, StepID: at}
	}
	return s, err
}

// Runs implements run.Store. Unfinished runs are few and found through the
// queue, finished ones through an index of their own, so that a filter never
// walks over what it does not return.
func (s *Store) Runs(ctx context.Context, workspaceID, workflowID string, status run.Status, page paging.Request) (paging.Page[run.Item], error) {
	const (
		columns = `SELECT r.id, r.workflow_id, r.status, r.started_at, r.finished_at FROM `
		live    = ` AND EXISTS (SELECT 1 FROM workflows w WHERE w.id = $1 AND w.workspace_id = $2 AND w.deleted_at IS NULL) `
	)
	args := []any{workflowID, workspaceID, before(page.After), page.Limit + 1}
	statement := columns + `runs r WHERE r.workflow_id = $1 AND r.id < $3` + live + `ORDER BY r.id DESC LIMIT $4`
	switch status {
	case "":
	case run.Running:
		statement = columns + `run_queue q JOIN runs r ON r.id = q.run_id
			WHERE q.workflow_id = $1 AND q.run_id < $3` + listed("q.workflow_id") + live + `ORDER BY q.run_id DESC LIMIT $4`
	default:
		statement = columns + `runs r WHERE r.workflow_id = $1 AND r.id < $3 AND r.status = $5 AND r.status <> 'running'` + live + `
			ORDER BY r.id DESC LIMIT $4`
		args = append(args, string(status))
	}
	var items []run.Item
	err := s.read(ctx, func(c Conn) (err error) {
		items, err = list(c, statement, args, func(r Row) (i run.Item, err error) {
			err = r.Scan(&i.ID, &i.WorkflowID, (*string)(&i.Status), &i.StartedAt, &i.FinishedAt)
			return i, err
		})
		return err
	})
	return paging.Cut(items, page.Limit, func(i run.Item) string { return i.ID }), err
}
