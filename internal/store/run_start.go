package store

import (
	"context"
	"errors"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
	"github.com/stepmill/stepmill/internal/workflow"
)

// maxFresh bounds the payload of a run that is passed on in memory, because many runs may be
// queued. Others are read from the store when they start.
const maxFresh = 8 << 10

// StartRun implements run.Store.
func (s Runs) StartRun(ctx context.Context, start run.Start) (bool, error) {
	if s.startTouchesOneRun(start) && s.db.tx == nil {
		started, err := s.db.writeRun(ctx, start.Run.ID, func(tx *transaction) error {
			if err := expectRef(tx, start); err != nil {
				return err
			}
			return startRun(tx, start)
		})
		if started || err != nil {
			return started, err
		}
	}
	started := false
	err := s.db.write(ctx, func(tx *transaction) error {
		var err error
		if started, err = sameRef(tx, start); err != nil || !started {
			return err
		}
		if start.Fire != nil {
			if err := fire(tx, start.Run, *start.Fire); err != nil {
				return err
			}
		}
		return startRun(tx, start)
	})
	return started && err == nil, err
}

// startRun writes a run, its row in the queue and its event. If the run may not
// start, it writes nothing.
func startRun(tx *transaction, start run.Start) error {
	r := start.Run
	if r.Parent != nil {
		if err := checkChildStart(tx, r); err != nil {
			return err
		}
	}
	admitted, err := acquireSlot(tx, start)
	if err != nil {
		return err
	}
	if err := insertRun(tx, r); err != nil {
		return err
	}
	if start.Draft != nil {
		if err := insertDraft(tx, r.ID, *start.Draft); err != nil {
			return err
		}
	}
	for _, step := range start.Steps {
		if err := upsertStep(tx, r.ID, 0, step); err != nil {
			return err
		}
	}
	if start.HasFiles() {
		if err := writeRunFiles(tx, start); err != nil {
			return err
		}
	}
	executable, err := tx.queue.Insert(start, admitted)
	if err != nil {
		return err
	}
	tx.AfterCommit(func() { tx.db.Runs.announceStart(start, executable) })
	tx.addEvents(start.Event)
	return nil
}

// StartRuns implements run.Store.
func (s Runs) StartRuns(ctx context.Context, all run.Starts) ([]string, error) {
	var started []string
	err := s.db.write(ctx, func(tx *transaction) error {
		started = nil
		same, err := sameRefs(tx, all.Starts)
		if err != nil || !same {
			return err
		}
		refused := all.Rejected
		for _, start := range all.Starts {
			switch err := startRun(tx, start); {
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
			fired.NotFired = all.Summarize(refused)
		}
		last := all.Starts[0].Run
		last.ID = started[len(started)-1]
		if fired.Next != nil {
			tx.AfterCommit(func() { s.db.notify.Scheduled(workflow.FamilyOf(last.Trigger.Type), *fired.Next) })
		}
		return fire(tx, last, fired)
	})
	if err != nil {
		return nil, err
	}
	return started, nil
}

// startTouchesOneRun reports whether a start writes only the new run, which this
// node will execute.
func (s Runs) startTouchesOneRun(start run.Start) bool {
	return !start.HasFiles() && start.Concurrency == nil && start.Run.Parent == nil && len(start.Steps) == 0 && start.Fire == nil && s.db.queue.InsertsAlone(start)
}

// checkChildStart rejects a run that a step already started, and one whose parent
// run has ended: the caller may not know of the end yet, and nothing would cancel
// the child.
func checkChildStart(tx *transaction, r run.Run) error {
	if _, err := runqueue.Lock(tx, r.Parent.RunID); err != nil {
		return err
	}
	existing, err := database.Number(tx, `SELECT count(*) FROM runs WHERE id = $1`, r.ID)
	if err != nil {
		return err
	}
	if existing == 1 {
		return run.ErrStarted
	}
	running, err := runqueue.IsRunning(tx, r.WorkspaceID, r.Parent.RunID)
	if err == nil && !running {
		err = run.ErrParentEnded
	}
	return err
}

func (s Runs) announceStart(start run.Start, executable bool) {
	failpoint.Hit(failpoint.AfterAcceptCommit, start.Run.ID)
	s.db.notify.Started(start.Run.WorkspaceID)
	if !executable {
		s.db.notify.HeldBack(start.Run.ID)
		return
	}
	s.db.notify.Wake(firstWake(start))
}

// firstWake returns the wake-up of a new run. If this node will execute the run,
// the wake-up includes it.
func firstWake(start run.Start) run.Wake {
	r := start.Run
	wake := run.Wake{RunID: r.ID, WorkspaceID: r.WorkspaceID, WorkflowID: r.WorkflowID, Epoch: 1, At: clock.Past(r.StartedAt), Plan: start.Plan, Owned: start.Node != ""}
	if wake.Owned && r.Trigger.Size() <= maxFresh && len(start.Steps) == 0 {
		wake.Fresh = &run.Snapshot{Detail: run.Detail{Run: r}, WorkflowName: start.WorkflowName, Plan: start.Plan}
	}
	return wake
}
