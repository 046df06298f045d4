package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
)

// Leases implements engine.Store and local.Store: who executes a run, and what that changes.
type Leases struct{ db *DB }

var stepChunksTable = Table{Name: "step_chunks", Key: "run_id path number", Text: "run_id path", Int: "number", Bytes: "data"}

var stepAttemptsTable = Table{Name: "step_attempts", Key: "run_id path attempt", Text: "run_id path error_code error_text", Int: "attempt started_at finished_at"}

// Activate makes the node the owner of a run whose epoch still matches the
// wake-up. It returns false if the wake-up is stale. A node that became the owner
// but lost the response may call it again.
func (s Leases) Activate(ctx context.Context, wake run.Wake, node string) (lease run.Lease, activated bool, err error) {
	err = s.db.write(ctx, func(tx *transaction) (err error) {
		activated, err = tx.queue.Activate(wake, node)
		return err
	})
	return run.Lease{RunID: wake.RunID, Epoch: wake.Epoch + 1}, activated, err
}

// Snapshot reads a run for the engine. It returns nil if the run does not exist.
func (s Leases) Snapshot(ctx context.Context, runID string) (*run.Snapshot, error) {
	var (
		found    []namedRun
		snapshot *run.Snapshot
	)
	err := s.db.readAll(ctx, func() []database.Query {
		snapshot = &run.Snapshot{}
		return []database.Query{
			database.Collect(&found, selectRun+`WHERE r.id = $1`, []any{runID}, scanRun),
			database.Collect(&snapshot.Steps, selectStep+whereRun, []any{runID}, scanStep),
			database.Collect(&snapshot.Chunks, `SELECT path, number, data FROM step_chunks WHERE run_id = $1 ORDER BY path, number`, []any{runID}, scanChunk),
			runqueue.ReadTotals(runID, snapshot),
		}
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	snapshot.Run, snapshot.WorkflowName = found[0].Run, found[0].workflowName
	return snapshot, nil
}

// Commit applies a decision atomically if the lease is still valid. It may be
// repeated if its result was lost.
func (s Leases) Commit(ctx context.Context, lease run.Lease, r run.Run, d run.Decision) (committed run.Committed, err error) {
	fence := s.db.queue.Fence(lease, d)
	if s.decisionTouchesOneRun(r, d) && s.db.tx == nil {
		held, err := s.db.writeRun(ctx, lease.RunID, func(tx *transaction) error {
			if err := tx.Expect(fence.Text, fence.Args...); err != nil {
				return err
			}
			return writeDecision(tx, r, d)
		})
		if held || err != nil {
			return run.Committed{Held: held}, err
		}
	}
	err = s.db.write(ctx, func(tx *transaction) error {
		committed = run.Committed{}
		if d.Finish != nil {
			if err := lockParentAndSlots(tx, r); err != nil {
				return err
			}
		}
		n, err := tx.Exec(fence.Text, fence.Args...)
		if committed.Held = n == 1; err != nil || !committed.Held {
			return err
		}
		committed.Answers, err = writeAll(tx, r, d)
		return err
	})
	if err != nil {
		return run.Committed{}, err
	}
	return committed, nil
}

// writeAll writes a decision and what it changes beside its run: tables and keys, and
// files. It returns the answers of the operations. Those come last, because their locks
// on the workspace are held until the commit. They may refer to files that the decision
// records, whose lock comes after that of tables and keys. A run that ends passes files
// on, so they have to be recorded before.
func writeAll(tx *transaction, r run.Run, d run.Decision) (map[string]run.StepAnswer, error) {
	if d.Finish != nil {
		if err := writeDecisionFiles(tx, r, d); err != nil {
			return nil, err
		}
		return nil, writeDecision(tx, r, d)
	}
	if err := writeDecision(tx, r, d); err != nil {
		return nil, err
	}
	if len(d.Files)+len(d.Holds)+len(d.Releases) > 0 {
		if len(d.Operations) > 0 {
			if _, err := lockState(tx, r.WorkspaceID); err != nil {
				return nil, err
			}
		}
		if err := writeDecisionFiles(tx, r, d); err != nil {
			return nil, err
		}
	}
	return performOperations(tx, r, d.Operations)
}

// writeDecision writes a decision about a run whose lease is valid.
func writeDecision(tx *transaction, r run.Run, d run.Decision) error {
	if d.Finish != nil || d.Release {
		tx.queue.Release(r)
	}
	if err := checkUnanswered(tx, r.ID, d.Unanswered); err != nil {
		return err
	}
	for _, step := range d.Steps {
		if err := upsertStep(tx, r.ID, d.Rev, step); err != nil {
			return err
		}
		if err := applyEarlyAnswer(tx, r.ID, step, d.Release); err != nil {
			return err
		}
	}
	for _, path := range d.Retried {
		if err := tx.Do(`UPDATE steps SET answer = NULL, answer_files = NULL WHERE run_id = $1 AND path = $2`, r.ID, path); err != nil {
			return err
		}
	}
	for _, path := range d.DroppedChunks {
		if err := tx.Do(`DELETE FROM step_chunks WHERE run_id = $1 AND path = $2`, r.ID, path); err != nil {
			return err
		}
	}
	failpoint.Hit(failpoint.MidCheckpoint, r.ID)
	for _, chunk := range d.Chunks {
		if err := insertChunk(tx, r.ID, chunk); err != nil {
			return err
		}
	}
	for i, line := range d.Logs {
		if err := insertLog(tx, r.ID, d.Rev, i, line); err != nil {
			return err
		}
	}
	for _, attempt := range d.Attempts {
		if err := insertAttempt(tx, r.ID, attempt); err != nil {
			return err
		}
	}
	if len(d.Steps) > 0 {
		tx.AfterCommit(func() { tx.db.notify.Changed(r.ID) })
	}
	if d.Finish != nil {
		return finishRun(tx, r, d)
	}
	if d.ClearCrashes {
		if err := runqueue.ClearCrashes(tx, r.ID); err != nil {
			return err
		}
	}
	if d.Release {
		return tx.queue.Wake(r.ID)
	}
	return nil
}

// decisionTouchesOneRun reports whether a decision writes only its own run: it
// neither ends other runs nor passes the run on, nor changes tables, keys or files.
func (s Leases) decisionTouchesOneRun(r run.Run, d run.Decision) bool {
	return len(d.Operations)+len(d.Files)+len(d.Holds)+len(d.Releases) == 0 && r.ConcurrencyKey == "" && r.Parent == nil &&
		(d.Finish == nil || !d.Finish.CutShort) && (!d.Release || s.db.queue.ReleasesAlone())
}

// checkUnanswered rejects a decision that times out steps whose answer has
// arrived.
func checkUnanswered(tx *transaction, runID string, paths []string) error {
	for _, path := range paths {
		n, err := database.Number(tx, `SELECT count(*) FROM steps WHERE run_id = $1 AND path = $2 AND answer IS NOT NULL`, runID, path)
		if err != nil {
			return err
		}
		if n > 0 {
			return run.ErrAnswered
		}
	}
	return nil
}

func upsertStep(tx *transaction, runID string, rev int, step run.Step) error {
	var code, text, at any
	if step.Error != nil {
		code, text, at = step.Error.Code, step.Error.Message, database.OrNil(step.Error.StepID)
	}
	err := tx.Do(`INSERT INTO steps (run_id, path, seq, name, type, status, attempt, started_at, attempt_at, finished_at, wake_at,
		deadline, awaits, reason, error_code, error_text, error_step, rev, checkpoint_attempt, input, output, state)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
		ON CONFLICT (run_id, path) DO UPDATE SET status = excluded.status, attempt = excluded.attempt,
		started_at = excluded.started_at, attempt_at = excluded.attempt_at, finished_at = excluded.finished_at, wake_at = excluded.wake_at,
		deadline = excluded.deadline, awaits = excluded.awaits, reason = excluded.reason, error_code = excluded.error_code, error_text = excluded.error_text,
		error_step = excluded.error_step, rev = excluded.rev, checkpoint_attempt = excluded.checkpoint_attempt,
		input = excluded.input, output = excluded.output, state = excluded.state, input_files = NULL, output_files = NULL`,
		runID, step.Path, step.Seq, step.Name, step.Type, string(step.Status), step.Attempt, step.StartedAt, step.AttemptAt, database.TimeOrNil(step.FinishedAt),
		database.TimeOrNil(step.WakeAt), database.TimeOrNil(step.Deadline), database.OrNil(string(step.Awaits)), database.OrNil(step.Reason), code, text, at, rev, step.CheckpointAttempt,
		database.OrNil(string(step.Input)), database.OrNil(string(step.Output)), database.BytesOrNil(step.State))
	if err != nil {
		return err
	}
	return writeStepFiles(tx, runID, step)
}

// insertAttempt writes an attempt once, even if its commit is retried.
func insertAttempt(tx *transaction, runID string, a run.Attempt) error {
	return tx.Do(`INSERT INTO step_attempts (run_id, path, attempt, started_at, finished_at, error_code, error_text)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (run_id, path, attempt) DO NOTHING`,
		runID, a.Path, a.Number, a.StartedAt, a.FinishedAt, a.Error.Code, a.Error.Message)
}

// insertChunk writes a chunk once, even if its commit is retried.
func insertChunk(tx *transaction, runID string, c run.Chunk) error {
	return tx.Do(`INSERT INTO step_chunks (run_id, path, number, data) VALUES ($1, $2, $3, $4) ON CONFLICT (run_id, path, number) DO NOTHING`,
		runID, c.Path, c.Number, c.Data)
}

func scanChunk(r database.Row) (c run.Chunk, err error) {
	err = r.Scan(&c.Path, &c.Number, &c.Data)
	return c, err
}

func finishRun(tx *transaction, r run.Run, d run.Decision) error {
	f := *d.Finish
	var code, text, step any
	if f.Error != nil {
		code, text, step = f.Error.Code, f.Error.Message, database.OrNil(f.Error.StepID)
	}
	if err := tx.Do(`UPDATE runs SET status = $1, finished_at = $2, error_code = $3, error_text = $4, error_step = $5 WHERE id = $6`,
		string(f.Status), f.At, code, text, step, r.ID); err != nil {
		return err
	}
	return afterRunEnded(tx, r, f, run.CompletedDetail(r, d))
}

// Due lists runs that are due, the earliest first, except those of the given
// workspaces.
func (s Leases) Due(ctx context.Context, now time.Time, except []string, limit int) ([]run.Wake, error) {
	return view(ctx, s.db, func(c database.Conn) ([]run.Wake, error) { return runqueue.Due(c, now, except, limit) })
}

// NextDue returns the earliest wake-up time after the given time, or nil if there
// is none.
func (s Leases) NextDue(ctx context.Context, after time.Time) (*time.Time, error) {
	return view(ctx, s.db, func(c database.Conn) (*time.Time, error) { return runqueue.NextDue(c, after) })
}

// RecordCrash counts a crash against every run whose steps another process was
// executing: one of them may have caused it.
func (s Leases) RecordCrash(ctx context.Context, node string) error {
	return s.db.write(ctx, func(tx *transaction) error {
		return runqueue.CountCrash(tx, node)
	})
}

// Orphans lists runs owned by nodes other than the given one, ordered by id.
// After a restart these are the runs of the previous process.
func (s Leases) Orphans(ctx context.Context, node, after string, limit int) ([]run.Wake, error) {
	return view(ctx, s.db, func(c database.Conn) ([]run.Wake, error) { return runqueue.Orphans(c, node, after, limit) })
}
