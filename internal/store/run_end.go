package store

import (
	"context"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// CancelRun implements run.Store.
func (s *Store) CancelRun(ctx context.Context, cancel run.Cancellation) (bool, error) {
	cancelled := false
	err := s.write(ctx, func(u *unit) error {
		found, err := one(u, selectRun+`WHERE r.id = $1 AND r.workspace_id = $2 AND r.status = 'running'`,
			[]any{cancel.RunID, cancel.WorkspaceID}, scanRun)
		if cancelled = found != nil; err != nil || !cancelled {
			return err
		}
		if err := holdAbove(u, found.Run); err != nil {
			return err
		}
		cancelled, err = s.cancel(u, *found, cancel.At)
		return err
	})
	return cancelled, err
}

// cancel ends a running run for good. It answers false when the run has ended
// in the meantime.
func (s *Store) cancel(u *unit, of namedRun, at time.Time) (bool, error) {
	if held, err := hold(u, of.ID); err != nil || !held {
		return false, err
	}
	return true, s.cancelHeld(u, of, at)
}

func (s *Store) cancelHeld(u *unit, of namedRun, at time.Time) error {
	if err := u.Do(`UPDATE runs SET status = 'cancelled', finished_at = $1 WHERE id = $2`, at, of.ID); err != nil {
		return err
	}
	// Without its row in the queue the run has no lease that could write.
	if err := s.drop(u, of.Run); err != nil {
		return err
	}
	ended := of.Run
	ended.Status, ended.FinishedAt = run.Cancelled, &at
	event, err := run.EndedEvent(ended, of.workflowName, at)
	if err != nil {
		return err
	}
	return s.ended(u, ended, run.Finish{Status: run.Cancelled, At: at, Event: event, CutShort: true}, nil)
}

// ended is what follows from the end of a run: for what it leaves open, its
// event, the runs that share places with it, the run that waits for it. The whole
// run is nil where it is not known.
func (s *Store) ended(u *unit, of run.Run, f run.Finish, whole *run.Detail) error {
	u.afterCommit(func() {
		s.notify.Ended(run.Ending{WorkspaceID: of.WorkspaceID, RunID: of.ID, Status: f.Status, Detail: whole})
	})
	if f.CutShort {
		if err := s.cutShort(u, of.ID, f.At); err != nil {
			return err
		}
	}
	u.record(f.Event)
	if of.ShareKey != "" {
		if err := s.passPlace(u, of, f.At); err != nil {
			return err
		}
	}
	if of.Parent != nil && of.Parent.Waits {
		if err := s.tellParent(u, of, f); err != nil {
			return err
		}
	}
	return nil
}

// cutShort ends what the end of a run leaves open: its steps, and the runs that
// these waited for.
func (s *Store) cutShort(u *unit, runID string, at time.Time) error {
	if err := u.Do(`UPDATE steps SET status = 'cancelled', finished_at = $1, wake_at = NULL, deadline = NULL, awaits = NULL, reason = NULL,
		rev = (SELECT max(l.rev) + 1 FROM steps l WHERE l.run_id = $2)
		WHERE run_id = $2 AND status IN ('running', 'waiting')`, at, runID); err != nil {
		return err
	}
	return s.cancelChildren(u, runID, at)
}

// tellParent hands the outcome of a run to the step that waits for it.
func (s *Store) tellParent(u *unit, of run.Run, f run.Finish) error {
	outcome, err := strictjson.Encode(run.NewOutcome(of.ID, f))
	if err != nil {
		return err
	}
	_, err = s.answer(u, of.Parent.RunID, of.Parent.StepID, outcome, f.At)
	return err
}

// tellParents tells the steps that wait for runs of a workflow that these are
// gone.
func (s *Store) tellParents(u *unit, workflowID string, at time.Time) error {
	gone, err := list(u, `SELECT r.id, r.parent_run, r.parent_step FROM run_queue q JOIN runs r ON r.id = q.run_id
		WHERE q.workflow_id = $1`+listed("q.workflow_id")+` AND r.parent_run IS NOT NULL AND r.parent_waits`, []any{workflowID},
		func(r Row) (of run.Run, err error) {
			of.Parent = &run.Parent{}
			err = r.Scan(&of.ID, &of.Parent.RunID, &of.Parent.StepID)
			return of, err
		})
	if err != nil {
		return err
	}
	for _, of := range gone {
		if err := s.tellParent(u, of, run.Finish{Status: run.Deleted, At: at}); err != nil {
			return err
		}
	}
	return nil
}

// cancelChildren ends the runs that the steps of a run waited for.
func (s *Store) cancelChildren(u *unit, runID string, at time.Time) error {
	children, err := list(u, selectRun+`WHERE r.parent_run = $1 AND r.parent_waits AND r.status = 'running'`, []any{runID}, scanRun)
	return errors.Join(err, s.cancelAll(u, children, at))
}

// cancelChildrenOf ends the runs that those of a workflow waited for.
func (s *Store) cancelChildrenOf(u *unit, workflowID string, at time.Time) error {
	children, err := list(u, selectRun+`JOIN run_queue q ON q.run_id = r.parent_run
		WHERE q.workflow_id = $1 AND r.parent_waits AND r.status = 'running'`, []any{workflowID}, scanRun)
	return errors.Join(err, s.cancelAll(u, children, at))
}

func (s *Store) cancelAll(u *unit, runs []namedRun, at time.Time) error {
	for _, of := range runs {
		if _, err := s.cancel(u, of, at); err != nil {
			return err
		}
	}
	return nil
}

// EndedOf tells which of the given runs are not running any more. One that is not
// there is about to start.
func (s *Store) EndedOf(ctx context.Context, ids []string) ([]string, error) {
	var ended []string
	err := s.readAll(ctx, func() []Query {
		ended = nil
		queries := make([]Query, len(ids))
		for i, id := range ids {
			queries[i] = Query{`SELECT id FROM runs WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM run_queue WHERE run_id = $1)`, []any{id}, func(Row) error {
				ended = append(ended, id)
				return nil
			}}
		}
		return queries
	})
	return ended, err
}
