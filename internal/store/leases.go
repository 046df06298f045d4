package store

import (
	"context"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Activate makes the node the owner of a run that still has the epoch of the
// wake-up. It answers false for a stale wake-up. One who has become the owner
// without learning of it may ask again.
func (s *Store) Activate(ctx context.Context, wake run.Wake, node string) (run.Lease, bool, error) {
	activated, still := false, notDeleted
	if s.cluster != nil { // the run is in our hands already, or it is not ours
		still += ` AND node = $2 AND slot`
	}
	lease := run.Lease{RunID: wake.RunID, Epoch: wake.Epoch + 1}
	err := s.write(ctx, func(u *unit) error {
		n, err := u.Exec(`UPDATE run_queue SET epoch = $1, node = $2, wake_at = NULL
			WHERE run_id = $3 AND turn AND (epoch = $4 OR epoch = $1 AND node = $2)`+still,
			lease.Epoch, node, lease.RunID, wake.Epoch)
		activated = n == 1
		return err
	})
	return lease, activated, err
}

// Snapshot reads a run for the engine; nil when it is gone.
func (s *Store) Snapshot(ctx context.Context, runID string) (*run.Snapshot, error) {
	var (
		found    []namedRun
		snapshot *run.Snapshot
	)
	err := s.readAll(ctx, func() []Query {
		snapshot = &run.Snapshot{}
		return []Query{
			into(&found, selectRun+`WHERE r.id = $1`, []any{runID}, scanRun),
			into(&snapshot.Steps, selectStep+ofRun, []any{runID}, scanStep),
			{`SELECT w.plan, q.ran, q.logged FROM run_queue q JOIN workspaces w ON w.id = q.workspace_id WHERE q.run_id = $1`, []any{runID},
				func(r Row) error { return r.Scan((*string)(&snapshot.Plan), (*int64)(&snapshot.Ran), &snapshot.Logged) }},
		}
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	snapshot.Run, snapshot.WorkflowName = found[0].Run, found[0].workflowName
	return snapshot, nil
}

// Definition reads the version that a run is pinned to; nil when it is gone.
func (s *Store) Definition(ctx context.Context, workflowID string, version int) (*workflow.Definition, error) {
	var found *workflow.Definition
	err := s.read(ctx, func(c Conn) (err error) {
		found, err = one(c, `SELECT definition FROM workflow_versions WHERE workflow_id = $1 AND version = $2`,
			[]any{workflowID, version}, func(r Row) (workflow.Definition, error) {
				var definition []byte
				if err := r.Scan(&definition); err != nil {
					return workflow.Definition{}, err
				}
				return workflow.ParseDefinition(definition)
			})
		return err
	})
	return found, err
}

// Commit applies a decision as a whole if the lease still holds, and answers
// false, having changed nothing, if it does not.
func (s *Store) Commit(ctx context.Context, lease run.Lease, of run.Run, d run.Decision) (bool, error) {
	fence := s.fence(lease, d)
	if s.aloneDecision(of, d) && !nested(ctx) {
		held, err := s.writeRun(ctx, lease.RunID, func(u *unit) error {
			if err := u.Expect(fence.text, fence.args...); err != nil {
				return err
			}
			return s.decide(u, of, d)
		})
		if held || err != nil {
			return held, err
		}
	}
	held := false
	err := s.write(ctx, func(u *unit) error {
		if d.Finish != nil {
			if err := holdAbove(u, of); err != nil {
				return err
			}
		}
		n, err := u.Exec(fence.text, fence.args...)
		if held = n == 1; err != nil || !held {
			return err
		}
		return s.decide(u, of, d)
	})
	return held, err
}

// decide writes what was decided about a run whose lease holds.
func (s *Store) decide(u *unit, of run.Run, d run.Decision) error {
	if s.cluster != nil && (d.Finish != nil || d.Release) {
		u.free(of.WorkspaceID, 1, 0)
	}
	if err := checkUnanswered(u, of.ID, d.Unanswered); err != nil {
		return err
	}
	for _, step := range d.Steps {
		if err := upsertStep(u, of.ID, d.Rev, step); err != nil {
			return err
		}
		if err := s.takeEarly(u, of.ID, step, d.Release); err != nil {
			return err
		}
	}
	failpoint.Hit(failpoint.MidCheckpoint, of.ID)
	for i, line := range d.Logs {
		if err := insertLog(u, of.ID, d.Rev, i, line); err != nil {
			return err
		}
	}
	for _, attempt := range d.Attempts {
		if err := insertAttempt(u, of.ID, attempt); err != nil {
			return err
		}
	}
	if len(d.Steps) > 0 {
		u.afterCommit(func() { s.notify.Changed(of.ID) })
	}
	if d.Finish != nil {
		return s.finish(u, of, d)
	}
	if d.Acquit {
		if err := u.Do(`UPDATE run_queue SET crashes = 0, blamed = NULL WHERE run_id = $1`, of.ID); err != nil {
			return err
		}
	}
	if d.Release {
		return s.wake(u, of.ID)
	}
	return nil
}

// aloneDecision tells that a decision touches nothing but its run: it neither
// ends others nor hands the run over.
func (s *Store) aloneDecision(of run.Run, d run.Decision) bool {
	return of.ShareKey == "" && of.Parent == nil && (d.Finish == nil || !d.Finish.CutShort) && (s.cluster == nil || !d.Release)
}

// wake hands a run that nobody holds to the one who watches the time. One that
// was just given back wakes at once when something came for it in the meantime.
func (s *Store) wake(u *unit, runID string) error {
	if s.cluster != nil {
		u.waking = append(u.waking, runID)
		return nil
	}
	wake, err := one(u, selectWake+`WHERE run_queue.run_id = $1`, []any{runID}, scanWake)
	if err == nil && wake != nil {
		u.afterCommit(func() { s.notify.Wake(*wake) })
	}
	return err
}

const (
	wakeFields  = `run_queue.run_id, run_queue.workspace_id, run_queue.workflow_id, run_queue.epoch, run_queue.wake_at, run_queue.crashes, s.plan`
	wakeColumns = wakeFields + ` FROM run_queue JOIN workspaces s ON s.id = run_queue.workspace_id`
	selectWake  = `SELECT ` + wakeColumns + ` `
)

// inHands tells that some node holds a run. It is not written as IS NOT NULL: then
// PostgreSQL, if it has last counted the queue while that was empty, looks for the
// run among all that are held, and among those that were.
const inHands = ` AND COALESCE(node, '') <> ''`

// fence touches the run's row in the queue under the lease's epoch: no row, no
// right to write. In a cluster who has the lease has a slot: so a run that was
// given back is not given back once more by one who did not hear that it was.
func (s *Store) fence(lease run.Lease, d run.Decision) statement {
	giveBack, held := ``, notDeleted
	if s.cluster != nil {
		giveBack, held = `slot = false, `, notDeleted+` AND slot`+inHands
	}
	switch {
	case d.Finish != nil:
		return statement{`DELETE FROM run_queue WHERE run_id = $1 AND epoch = $2` + held, []any{lease.RunID, lease.Epoch}}
	case d.Release:
		return statement{`UPDATE run_queue SET ` + giveBack + `node = NULL, wake_at = CASE WHEN wake_at < $1 THEN wake_at ELSE $1 END, executing = NULL, ran = $2, logged = $3
			WHERE run_id = $4 AND epoch = $5` + held, []any{d.WakeAt, int64(d.Ran), d.Logged, lease.RunID, lease.Epoch}}
	default:
		return statement{`UPDATE run_queue SET executing = $1, ran = $2, logged = $3 WHERE run_id = $4 AND epoch = $5` + held,
			[]any{orNil(strings.Join(d.Executing, "\n")), int64(d.Ran), d.Logged, lease.RunID, lease.Epoch}}
	}
}

// checkUnanswered refuses to settle steps for want of an answer that has come.
func checkUnanswered(u *unit, runID string, paths []string) error {
	for _, path := range paths {
		n, err := number(u, `SELECT count(*) FROM steps WHERE run_id = $1 AND path = $2 AND answer IS NOT NULL`, runID, path)
		if err != nil {
			return err
		}
		if n > 0 {
			return run.ErrAnswered
		}
	}
	return nil
}

func upsertStep(u *unit, runID string, rev int, step run.Step) error {
	var code, text, at any
	if step.Error != nil {
		code, text, at = step.Error.Code, step.Error.Message, orNil(step.Error.StepID)
	}
	err := u.Do(`INSERT INTO steps (run_id, path, seq, name, type, status, attempt, started_at, attempt_at, finished_at, wake_at,
		deadline, awaits, reason, error_code, error_text, error_step, rev, input, output)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
		ON CONFLICT (run_id, path) DO UPDATE SET status = excluded.status, attempt = excluded.attempt,
		started_at = excluded.started_at, attempt_at = excluded.attempt_at, finished_at = excluded.finished_at, wake_at = excluded.wake_at,
		deadline = excluded.deadline, awaits = excluded.awaits, reason = excluded.reason, error_code = excluded.error_code, error_text = excluded.error_text,
		error_step = excluded.error_step, rev = excluded.rev, input = excluded.input, output = excluded.output`,
		runID, step.Path, step.Seq, step.Name, step.Type, string(step.Status), step.Attempt, step.StartedAt, step.AttemptAt, timeOrNil(step.FinishedAt),
		timeOrNil(step.WakeAt), timeOrNil(step.Deadline), orNil(string(step.Awaits)), orNil(step.Reason), code, text, at, rev, orNil(string(step.Input)), orNil(string(step.Output)))
	return err
}

// insertAttempt keeps an attempt once, also when its commit is repeated.
func insertAttempt(u *unit, runID string, a run.Attempt) error {
	err := u.Do(`INSERT INTO step_attempts (run_id, path, attempt, started_at, finished_at, error_code, error_text)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (run_id, path, attempt) DO NOTHING`,
		runID, a.Path, a.Number, a.StartedAt, a.FinishedAt, a.Error.Code, a.Error.Message)
	return err
}

func (s *Store) finish(u *unit, of run.Run, d run.Decision) error {
	f := *d.Finish
	var code, text, step any
	if f.Error != nil {
		code, text, step = f.Error.Code, f.Error.Message, orNil(f.Error.StepID)
	}
	if err := u.Do(`UPDATE runs SET status = $1, finished_at = $2, error_code = $3, error_text = $4, error_step = $5 WHERE id = $6`,
		string(f.Status), f.At, code, text, step, of.ID); err != nil {
		return err
	}
	return s.ended(u, of, f, run.WholeEnd(of, d))
}

func scanWake(r Row) (w run.Wake, err error) {
	err = r.Scan(&w.RunID, &w.WorkspaceID, &w.WorkflowID, &w.Epoch, &w.At, &w.Crashes, (*string)(&w.Plan))
	return w, err
}

// Due lists runs that wait for a time that has come, the earliest first, without
// those of the given workspaces.
func (s *Store) Due(ctx context.Context, now time.Time, except []string, limit int) ([]run.Wake, error) {
	statement, args := selectWake+`WHERE run_queue.node IS NULL AND run_queue.wake_at <= $1`+notDeleted, []any{now, limit}
	statement, args = without(statement, "run_queue.workspace_id", except, args)
	var wakes []run.Wake
	err := s.read(ctx, func(c Conn) (err error) {
		wakes, err = list(c, statement+` ORDER BY run_queue.wake_at LIMIT $2`, args, scanWake)
		return err
	})
	return wakes, err
}

// NextDue tells when the first run wakes that waits for a later time than the
// given one; nil when there is none.
func (s *Store) NextDue(ctx context.Context, after time.Time) (*time.Time, error) {
	var next *time.Time
	err := s.read(ctx, func(c Conn) error {
		return c.Query(`SELECT min(wake_at) FROM run_queue WHERE node IS NULL AND wake_at > $1`, []any{after}, func(r Row) error { return r.Scan(&next) })
	})
	return next, err
}

// Blame counts a crash against every run whose steps were being executed by a
// process that is gone: one of them may be the reason.
func (s *Store) Blame(ctx context.Context, node string) error {
	return s.write(ctx, func(u *unit) error {
		return u.Do(blame, node)
	})
}

const blame = `UPDATE run_queue SET crashes = CASE WHEN blamed = executing THEN crashes + 1 ELSE 1 END, blamed = executing, executing = NULL
	WHERE node IS NOT NULL AND node <> $1 AND executing IS NOT NULL`

// Orphans lists runs held by another node than the given one, in order of
// their id: after a restart these are the runs that the last process left.
func (s *Store) Orphans(ctx context.Context, node, after string, limit int) ([]run.Wake, error) {
	var wakes []run.Wake
	err := s.read(ctx, func(c Conn) (err error) {
		wakes, err = list(c, selectWake+`WHERE run_queue.node IS NOT NULL AND run_queue.node <> $1 AND run_queue.run_id > $2`+notDeleted+`
			ORDER BY run_queue.run_id LIMIT $3`, []any{node, after, limit}, scanWake)
		return err
	})
	return wakes, err
}
