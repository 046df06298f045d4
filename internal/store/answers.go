package store

import (
	"context"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
)

var earlyAnswersTable = Table{Name: "early_answers", Key: "run_id path", Text: "run_id path value"}

// AnswerStep implements run.Store.
func (s Runs) AnswerStep(ctx context.Context, a run.Answer) (bool, error) {
	if a.Early {
		return s.answerEarly(ctx, a)
	}
	return transact(ctx, s.db, func(tx *transaction) (answered bool, err error) {
		if _, err := runqueue.Lock(tx, a.RunID); err != nil {
			return answered, err
		}
		open, err := database.Number(tx, `SELECT count(*) FROM steps JOIN runs r ON r.id = steps.run_id
			JOIN workflows w ON w.id = r.workflow_id AND w.deleted_at IS NULL
			WHERE steps.run_id = $1 AND steps.path = $2 AND r.workspace_id = $3 AND steps.awaits = 'answer' AND steps.status = 'waiting'`,
			a.RunID, a.StepID, a.WorkspaceID)
		if err != nil || open == 0 {
			answered = false
			return answered, err
		}
		if answered, err = storeAnswer(tx, a.RunID, a.StepID, a.Value, a.At); err != nil || !answered {
			return answered, err
		}
		return answered, insertAudit(tx, a.Entry)
	})
}

// answerEarly answers a step that may not wait for the answer yet. It touches the
// row in the queue first, as the node that executes the run does, so neither
// misses the other's write.
func (s Runs) answerEarly(ctx context.Context, a run.Answer) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (answered bool, err error) {
		running, err := runqueue.LockIn(tx, a.WorkspaceID, a.RunID)
		if answered = false; err != nil || !running {
			return answered, err
		}
		begun, err := database.Number(tx, `SELECT count(*) FROM steps WHERE run_id = $1 AND path = $2`, a.RunID, a.StepID)
		if err != nil {
			return answered, err
		}
		if begun == 1 {
			answered, err = storeAnswer(tx, a.RunID, a.StepID, a.Value, a.At)
		} else {
			// Repeating the same answer succeeds: the sender may have missed the
			// response.
			var n int64
			n, err = tx.Exec(`INSERT INTO early_answers (run_id, path, value) VALUES ($1, $2, $3)
				ON CONFLICT (run_id, path) DO UPDATE SET value = excluded.value WHERE early_answers.value = excluded.value`,
				a.RunID, a.StepID, string(a.Value))
			answered = n == 1
		}
		if err != nil || !answered {
			return answered, err
		}
		return answered, insertAudit(tx, a.Entry)
	})
}

// applyEarlyAnswer gives a step that starts to wait for an answer the one that
// arrived early.
func applyEarlyAnswer(tx *transaction, runID string, step run.Step, released bool) error {
	if step.Awaits != action.AwaitsAnswer || step.Status != run.StepWaiting || step.Answer != nil {
		return nil
	}
	n, err := tx.Exec(`UPDATE steps SET answer = (SELECT e.value FROM early_answers e WHERE e.run_id = $1 AND e.path = $2)
		WHERE run_id = $1 AND path = $2 AND answer IS NULL AND EXISTS (SELECT 1 FROM early_answers e WHERE e.run_id = $1 AND e.path = $2)`,
		runID, step.Path)
	if err != nil || n == 0 {
		return err
	}
	if err := tx.Do(`DELETE FROM early_answers WHERE run_id = $1 AND path = $2`, runID, step.Path); err != nil {
		return err
	}
	if !released {
		tx.AfterCommit(func() { tx.db.notify.AnswerArrived(runID) })
		return nil
	}
	return runqueue.SetWakeAt(tx, runID, clock.Past(step.StartedAt))
}

// RunOwner implements run.LinkStore.
func (s Runs) RunOwner(ctx context.Context, runID string) (string, error) {
	return readValue[string](ctx, s.db, `SELECT workspace_id FROM runs WHERE id = $1`, runID)
}

// LinkedStep implements run.LinkStore.
func (s Runs) LinkedStep(ctx context.Context, workspaceID, runID, path string) (*run.LinkedStep, error) {
	return view(ctx, s.db, func(c database.Conn) (found *run.LinkedStep, err error) {
		found, err = database.One(c, `SELECT ws.id, ws.name, ws.plan, w.name, r.status FROM runs r
			JOIN workflows w ON w.id = r.workflow_id AND w.deleted_at IS NULL JOIN workspaces ws ON ws.id = r.workspace_id
			WHERE r.id = $1 AND r.workspace_id = $2`, []any{runID, workspaceID}, func(r database.Row) (a run.LinkedStep, err error) {
			err = r.Scan(&a.Workspace.ID, &a.Workspace.Name, (*string)(&a.Workspace.Plan), &a.WorkflowName, (*string)(&a.RunStatus))
			return a, err
		})
		if err != nil || found == nil {
			return found, err
		}
		found.Step, err = database.One(c, selectStep+`WHERE run_id = $1 AND path = $2`, []any{runID, path}, scanStep)
		return found, err
	})
}

// storeAnswer stores a value for a step that is open and has no answer yet. It
// notifies the node that executes the run; if there is none, it wakes the run.
func storeAnswer(tx *transaction, runID, path string, value []byte, at time.Time) (bool, error) {
	if running, err := runqueue.Lock(tx, runID); err != nil || !running {
		return false, err
	}
	n, err := tx.Exec(`UPDATE steps SET answer = $1 WHERE run_id = $2 AND path = $3 AND status IN ('running', 'waiting') AND answer IS NULL`,
		string(value), runID, path)
	if err != nil || n == 0 {
		return false, err
	}
	return true, announceAnswer(tx, runID, clock.Past(at))
}

// announceAnswer makes a run check for new answers at a steady time.
func announceAnswer(tx *transaction, runID string, at time.Time) error {
	owned, err := runqueue.NoteAnswer(tx, runID, at)
	if err != nil {
		return err
	}
	if owned {
		tx.AfterCommit(func() { tx.db.notify.AnswerArrived(runID) })
		return nil
	}
	return tx.queue.Wake(runID)
}

// Approvals implements run.Store.
func (s Runs) Approvals(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[run.Approval], error) {
	runID, path, _ := strings.Cut(page.After, "/")
	found, err := view(ctx, s.db, func(c database.Conn) ([]run.Approval, error) {
		return runqueue.Approvals(c, workspaceID, before(runID), path, page.Limit+1)
	})
	return paging.Cut(found, page.Limit, func(a run.Approval) string { return a.RunID + "/" + a.StepID }), err
}

// Answers returns the answers to the open steps of a run, by path.
func (s Leases) Answers(ctx context.Context, runID string) (map[string]run.StepAnswer, error) {
	return view(ctx, s.db, func(c database.Conn) (answers map[string]run.StepAnswer, err error) {
		answers = map[string]run.StepAnswer{}
		return answers, c.Query(`SELECT path, answer, answer_files FROM steps WHERE run_id = $1 AND answer IS NOT NULL AND status IN ('running', 'waiting')`,
			[]any{runID}, func(r database.Row) error {
				var (
					path   string
					answer run.StepAnswer
					files  filePointers
				)
				if err := r.Scan(&path, (*[]byte)(&answer.Value), (*[]byte)(&files)); err != nil {
					return err
				}
				err := files.decode(&answer.Files)
				answers[path] = answer
				return err
			})
	})
}
