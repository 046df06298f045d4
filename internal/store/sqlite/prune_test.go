package sqlite_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
)

// TestWritesDuringPurge checks that other writes happen between two batches and
// do not wait for the end of a purge.
func TestWritesDuringPurge(t *testing.T) {
	t.Parallel()
	const runs, limit = 3_000, 100
	ctx, db := t.Context(), open(t, newDir(t))
	err := db.Write(ctx, func(c database.Conn) error {
		for _, statement := range []string{
			`INSERT INTO workspaces (id, name, plan, requests_per_minute, data_key, created_at, updated_at) VALUES ('ws_1', 'n', 'free', 60, '', 0, 0)`,
			`INSERT INTO workflows (id, workspace_id, name, state, version, revision, created_at, updated_at, layout) VALUES ('wf_1', 'ws_1', 'n', 'draft', 1, 1, 0, 0, '{}')`,
			fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
				INSERT INTO runs (id, workspace_id, workflow_id, workflow_version, status, started_at, finished_at, trigger_type, payload)
				SELECT printf('run_0%%025d', i), 'ws_1', 'wf_1', 1, 'succeeded', i, i, 'manual', '{}' FROM n`, runs),
		} {
			if _, err := c.Exec(statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pruner, now := run.NewPruner(store.New(db, store.Notify{}).Runs, auth.Plan.Retention), clock.Now()
	batches := 0
	for more := true; more; batches++ {
		written := make(chan error, 1)
		go func() { written <- db.Write(ctx, putKey(fmt.Sprint(batches))) }()
		if more, err = pruner.Batch(ctx, now, limit); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-written:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("after batch %d writes are blocked", batches)
		}
	}
	if batches <= runs/limit {
		t.Errorf("%d runs were purged in %d batches", runs, batches)
	}
	if got := len(keys(t, db)); got != batches {
		t.Errorf("%d of %d writes were found", got, batches)
	}
	err = db.Read(ctx, func(c database.Conn) error {
		left, err := column(c, `SELECT id FROM runs`)
		if len(left) != 0 {
			t.Errorf("%d runs are left", len(left))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
