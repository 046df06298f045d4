package store

import (
	"context"
	"errors"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
	"github.com/stepmill/stepmill/internal/txn"
)

// Runs implements run.Store, run.LinkStore and run.PruneStore.
type Runs struct {
	db *DB
	definitionReader
	fileReader
}

// In implements run.Store.
func (s Runs) In(tx txn.Tx) run.Store { return s.db.in(tx).Runs }

var stepsTable = Table{
	Name: "steps", Key: "run_id path", Int: "seq attempt started_at attempt_at finished_at wake_at deadline rev checkpoint_attempt", Bytes: "state",
	Text: "run_id path name type status awaits reason error_code error_text error_step input output answer input_files output_files answer_files",
}

var runsTable = Table{
	Name: "runs", Key: "id", Int: "workflow_version started_at finished_at depth", Bool: "parent_waits test draft",
	Text: "id workspace_id workflow_id status trigger_type trigger_id error_code error_text error_step retry_of parent_run parent_step concurrency_key payload headers query started_by_type started_by_id started_by_name files",
}

func insertRun(tx *transaction, r run.Run) error {
	var (
		parent, step, waits any
		by                  run.Starter
	)
	if r.StartedBy != nil {
		by = *r.StartedBy
	}
	if r.Parent != nil {
		parent, step, waits = r.Parent.RunID, r.Parent.StepID, r.Parent.Waits
	}
	return tx.Do(`INSERT INTO runs (id, workspace_id, workflow_id, workflow_version, status, started_at, trigger_type, trigger_id, retry_of,
		parent_run, parent_step, parent_waits, depth, concurrency_key, test, draft, payload, headers, query, started_by_type, started_by_id, started_by_name)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)`,
		r.ID, r.WorkspaceID, r.WorkflowID, r.WorkflowVersion, string(r.Status), r.StartedAt, r.Trigger.Type, database.OrNil(r.Trigger.ID), database.OrNil(r.RetryOf),
		parent, step, waits, r.Depth, database.OrNil(r.ConcurrencyKey), r.Trigger.Test, r.Draft, string(r.Trigger.Payload), database.OrNil(string(r.Trigger.Headers)), database.OrNil(string(r.Trigger.Query)),
		database.OrNil(by.Type), database.OrNil(by.ID), database.OrNil(by.Name))
}

const runColumns = `r.id, r.workspace_id, r.workflow_id, r.workflow_version, r.status, r.started_at, r.finished_at,
	r.trigger_type, r.trigger_id, r.error_code, r.error_text, r.error_step, r.retry_of,
	r.parent_run, r.parent_step, r.parent_waits, r.depth, r.concurrency_key, r.test, r.draft,
	r.started_by_type, r.started_by_id, r.started_by_name`

const fromRuns = ` FROM runs r JOIN workflows w ON w.id = r.workflow_id AND w.deleted_at IS NULL `

const selectRun = `SELECT ` + runColumns + `, r.payload, r.files, r.headers, r.query, w.name` + fromRuns

type namedRun struct {
	run.Run
	workflowName string
}

func scanRun(row database.Row) (namedRun, error) {
	var (
		r                namedRun
		code, text, step string
		parent           run.Parent
		by               run.Starter
		files            filePointers
	)
	err := row.Scan(&r.ID, &r.WorkspaceID, &r.WorkflowID, &r.WorkflowVersion, (*string)(&r.Status), &r.StartedAt, &r.FinishedAt,
		&r.Trigger.Type, &r.Trigger.ID, &code, &text, &step, &r.RetryOf,
		&parent.RunID, &parent.StepID, &parent.Waits, &r.Depth, &r.ConcurrencyKey, &r.Trigger.Test, &r.Draft,
		&by.Type, &by.ID, &by.Name,
		(*[]byte)(&r.Trigger.Payload), (*[]byte)(&files), (*[]byte)(&r.Trigger.Headers), (*[]byte)(&r.Trigger.Query), &r.workflowName)
	if err == nil {
		err = files.decode(&r.Trigger.Files)
	}
	if parent.RunID != "" {
		r.Parent = &parent
	}
	if by.ID != "" {
		r.StartedBy = &by
	}
	if code != "" {
		r.Error = &run.Failure{Code: code, Message: text, StepID: step}
	}
	return r, err
}

// Run implements run.Store.
func (s Runs) Run(ctx context.Context, workspaceID, id string) (*run.Detail, error) {
	var (
		found  []namedRun
		detail *run.Detail
	)
	err := s.db.readAll(ctx, func() []database.Query {
		detail = &run.Detail{}
		return []database.Query{
			database.Collect(&found, selectRun+`WHERE r.id = $1 AND r.workspace_id = $2`, []any{id, workspaceID}, scanRun),
			database.Collect(&detail.Steps, selectStep+whereRun, []any{id}, scanStep),
			database.Collect(&detail.Attempts, selectAttempt+`WHERE run_id = $1 ORDER BY path, attempt`, []any{id}, scanAttempt),
			runqueue.ReadState(s.db.queue, id, detail),
		}
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	detail.Run = found[0].Run
	return detail, nil
}

// RunSummary implements run.Store.
func (s Runs) RunSummary(ctx context.Context, workspaceID, id string) (*run.Run, error) {
	found, err := readOne(ctx, s.db, selectRun+`WHERE r.id = $1 AND r.workspace_id = $2`, []any{id, workspaceID}, scanRun)
	if err != nil || found == nil {
		return nil, err
	}
	return &found.Run, nil
}

const whereRun = `WHERE run_id = $1 ORDER BY seq`

const stepColumns = `path, seq, name, type, status, attempt, started_at, attempt_at, finished_at, wake_at, deadline, awaits, reason,
	error_code, error_text, error_step, rev, checkpoint_attempt`

const selectStep = `SELECT ` + stepColumns + `, input, output, answer, state, input_files, output_files, answer_files FROM steps `

const selectAttempt = `SELECT path, attempt, started_at, finished_at, error_code, error_text FROM step_attempts `

func scanAttempt(r database.Row) (a run.Attempt, err error) {
	err = r.Scan(&a.Path, &a.Number, &a.StartedAt, &a.FinishedAt, &a.Error.Code, &a.Error.Message)
	a.Error.StepID = a.Path
	return a, err
}

func scanStep(row database.Row) (run.Step, error) {
	var s run.Step
	// One allocation for all that Scan needs a pointer to.
	var more struct {
		code, text, at        string
		input, output, answer filePointers
	}
	err := row.Scan(&s.Path, &s.Seq, &s.Name, &s.Type, (*string)(&s.Status), &s.Attempt, &s.StartedAt, &s.AttemptAt, &s.FinishedAt, &s.WakeAt, &s.Deadline,
		(*string)(&s.Awaits), &s.Reason, &more.code, &more.text, &more.at, &s.Rev, &s.CheckpointAttempt,
		(*[]byte)(&s.Input), (*[]byte)(&s.Output), (*[]byte)(&s.Answer), &s.State, (*[]byte)(&more.input), (*[]byte)(&more.output), (*[]byte)(&more.answer))
	if more.code != "" {
		s.Error = &run.Failure{Code: more.code, Message: more.text, StepID: more.at}
	}
	if err == nil {
		err = errors.Join(more.input.decode(&s.InputFiles), more.output.decode(&s.OutputFiles), more.answer.decode(&s.AnswerFiles))
	}
	return s, err
}

// Runs implements run.Store. Unfinished runs are few and are read from the queue;
// finished ones have a partial index. A filter never scans rows that it does not
// return.
func (s Runs) Runs(ctx context.Context, workspaceID, workflowID string, status run.Status, page paging.Request) (paging.Page[run.Item], error) {
	const (
		columns = `SELECT r.id, r.workflow_id, r.status, r.started_at, r.finished_at FROM `
		// A count keeps SQLite from turning this into a join and sorting the
		// result.
		live = ` AND (SELECT count(*) FROM workflows w WHERE w.id = $1 AND w.workspace_id = $2 AND w.deleted_at IS NULL) = 1 `
	)
	args := []any{workflowID, workspaceID, before(page.After), page.Limit + 1}
	statement := columns + `runs r WHERE r.workflow_id = $1 AND r.id < $3` + live + `ORDER BY r.id DESC LIMIT $4`
	switch status {
	case "":
	case run.Running:
		statement = columns + `run_queue q JOIN runs r ON r.id = q.run_id
			WHERE q.workflow_id = $1 AND q.run_id < $3` + runqueue.UseIndex("q.workflow_id") + live + `ORDER BY q.run_id DESC LIMIT $4`
	default:
		statement = columns + `runs r WHERE r.workflow_id = $1 AND r.id < $3 AND r.status = $5 AND r.status <> 'running'` + live + `
			ORDER BY r.id DESC LIMIT $4`
		args = append(args, string(status))
	}
	items, err := readList(ctx, s.db, statement, args, func(r database.Row) (i run.Item, err error) {
		err = r.Scan(&i.ID, &i.WorkflowID, (*string)(&i.Status), &i.StartedAt, &i.FinishedAt)
		return i, err
	})
	return paging.Cut(items, page.Limit, func(i run.Item) string { return i.ID }), err
}
