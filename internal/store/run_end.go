package store

import (
	"context"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// CancelRun implements run.Store.
func (s Runs) CancelRun(ctx context.Context, cancel run.Cancellation) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (cancelled bool, err error) {
		found, err := database.One(tx, selectRun+`WHERE r.id = $1 AND r.workspace_id = $2 AND r.status = 'running'`,
			[]any{cancel.RunID, cancel.WorkspaceID}, scanRun)
		if cancelled = found != nil; err != nil || !cancelled {
			return cancelled, err
		}
		if err := lockParentAndSlots(tx, found.Run); err != nil {
			return cancelled, err
		}
		cancelled, err = cancelRun(tx, *found, cancel.At)
		return cancelled, err
	})
}

// cancelRun cancels a running run. It returns false if the run has already ended.
func cancelRun(tx *transaction, r namedRun, at time.Time) (bool, error) {
	if running, err := runqueue.Lock(tx, r.ID); err != nil || !running {
		return false, err
	}
	return true, cancelLockedRun(tx, r, at)
}

func cancelLockedRun(tx *transaction, r namedRun, at time.Time) error {
	if err := tx.Do(`UPDATE runs SET status = 'cancelled', finished_at = $1 WHERE id = $2`, at, r.ID); err != nil {
		return err
	}
	// Without a row in the queue no lease on the run is valid.
	if err := tx.queue.Remove(r.Run); err != nil {
		return err
	}
	ended := r.Run
	ended.Status, ended.FinishedAt = run.Cancelled, &at
	event, err := run.EndedEvent(ended, r.workflowName, at)
	if err != nil {
		return err
	}
	return afterRunEnded(tx, ended, run.Finish{Status: run.Cancelled, At: at, Event: event, CutShort: true}, nil)
}

// afterRunEnded applies the consequences of a run's end: it cancels open steps,
// records the event, passes the slot on to queued runs and answers the parent
// run. Detail is nil if it is not known.
func afterRunEnded(tx *transaction, r run.Run, f run.Finish, detail *run.Detail) error {
	tx.AfterCommit(func() {
		tx.db.notify.Ended(run.Completion{WorkspaceID: r.WorkspaceID, RunID: r.ID, Status: f.Status, Detail: detail})
	})
	if f.CutShort {
		if err := cancelOpenSteps(tx, r.ID, f.At); err != nil {
			return err
		}
	}
	tx.addEvents(f.Event)
	if r.ConcurrencyKey != "" {
		if err := passSlot(tx, r, f.At); err != nil {
			return err
		}
	}
	if r.Parent != nil && r.Parent.Waits {
		if err := answerParent(tx, r, f); err != nil {
			return err
		}
	}
	return nil
}

// cancelOpenSteps cancels the open steps of a run that has ended, and the runs
// that they wait for.
func cancelOpenSteps(tx *transaction, runID string, at time.Time) error {
	if err := tx.Do(`UPDATE steps SET status = 'cancelled', finished_at = $1, wake_at = NULL, deadline = NULL, awaits = NULL, reason = NULL, state = NULL, checkpoint_attempt = 0,
		rev = (SELECT max(l.rev) + 1 FROM steps l WHERE l.run_id = $2)
		WHERE run_id = $2 AND status IN ('running', 'waiting')`, at, runID); err != nil {
		return err
	}
	if err := tx.Do(`DELETE FROM step_chunks WHERE run_id = $1`, runID); err != nil {
		return err
	}
	children, err := database.List(tx, selectRun+`WHERE r.parent_run = $1 AND r.parent_waits AND r.status = 'running'`, []any{runID}, scanRun)
	return errors.Join(err, cancelRuns(tx, children, at))
}

// answerParent passes the outcome of a run to the step that waits for it.
func answerParent(tx *transaction, r run.Run, f run.Finish) error {
	outcome, err := strictjson.Encode(run.NewOutcome(r.ID, f))
	if err != nil {
		return err
	}
	answered, err := storeAnswer(tx, r.Parent.RunID, r.Parent.StepID, outcome, f.At)
	if err != nil || !answered || len(f.OutputFiles) == 0 {
		return err
	}
	return passFiles(tx, r, f)
}

// answerParents tells the steps that wait for runs of a workflow that these were
// deleted.
func answerParents(tx *transaction, workflowID string, at time.Time) error {
	deleted, err := runqueue.AwaitedBySteps(tx, workflowID)
	if err != nil {
		return err
	}
	for _, r := range deleted {
		if err := answerParent(tx, r, run.Finish{Status: run.Deleted, At: at}); err != nil {
			return err
		}
	}
	return nil
}

// cancelChildrenOf cancels the runs that runs of a workflow wait for.
func cancelChildrenOf(tx *transaction, workflowID string, at time.Time) error {
	children, err := runqueue.AwaitedChildren(tx, workflowID)
	if err != nil {
		return err
	}
	for _, id := range children {
		child, err := database.List(tx, selectRun+`WHERE r.id = $1`, []any{id}, scanRun)
		if err := errors.Join(err, cancelRuns(tx, child, at)); err != nil {
			return err
		}
	}
	return nil
}

func cancelRuns(tx *transaction, runs []namedRun, at time.Time) error {
	for _, r := range runs {
		if _, err := cancelRun(tx, r, at); err != nil {
			return err
		}
	}
	return nil
}

// EndedRuns returns those of the given runs that are no longer running. A run that
// does not exist is about to start and not included.
func (s Runs) EndedRuns(ctx context.Context, ids []string) ([]string, error) {
	var ended []string
	err := s.db.readAll(ctx, func() []database.Query {
		ended = nil
		queries := make([]database.Query, len(ids))
		for i, id := range ids {
			queries[i] = database.Query{Statement: `SELECT id FROM runs WHERE id = $1 AND status <> 'running'`, Args: []any{id}, Each: func(database.Row) error {
				ended = append(ended, id)
				return nil
			}}
		}
		return queries
	})
	return ended, err
}
