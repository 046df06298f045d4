package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/workflow"
)

// planned is a driver that notes how SQLite means to answer each query.
type planned struct {
	*sqlite.DB
	plans []string
}

func (d *planned) Read(ctx context.Context, fn func(store.Conn) error) error {
	return d.DB.Read(ctx, func(c store.Conn) error { return fn(plannedConn{c, d}) })
}

func (d *planned) Write(ctx context.Context, fn func(store.Conn) error) error {
	return d.DB.Write(ctx, func(c store.Conn) error { return fn(plannedConn{c, d}) })
}

type plannedConn struct {
	store.Conn
	to *planned
}

func (c plannedConn) Exec(text string, args ...any) (int64, error) {
	if err := c.explain(text, args); err != nil {
		return 0, err
	}
	return c.Conn.Exec(text, args...)
}

func (c plannedConn) Query(text string, args []any, each func(store.Row) error) error {
	if err := c.explain(text, args); err != nil {
		return err
	}
	return c.Conn.Query(text, args, each)
}

func (c plannedConn) explain(text string, args []any) error {
	var lines []string
	err := c.Conn.Query("EXPLAIN QUERY PLAN "+text, args, func(r store.Row) error {
		id, parent, unused, line := 0, 0, 0, ""
		err := r.Scan(&id, &parent, &unused, &line)
		lines = append(lines, line)
		return err
	})
	c.to.plans = append(c.to.plans, strings.Join(lines, "; "))
	return err
}

// Lists of runs and their removal walk along an index, with and without
// statistics, and whatever the size of the tables.
func TestQueryPlansOfRuns(t *testing.T) {
	t.Parallel()
	for _, analyzed := range []bool{false, true} {
		t.Run(fmt.Sprintf("analyzed %t", analyzed), func(t *testing.T) {
			t.Parallel()
			testQueryPlansOfRuns(t, analyzed)
		})
	}
}

func testQueryPlansOfRuns(t *testing.T, analyzed bool) {
	d := &planned{DB: open(t, newDir(t))}
	if analyzed {
		analyze(t, d.DB)
	}
	ctx, s, page := t.Context(), store.New(d, store.Notify{}), paging.Request{Limit: 20}
	all := func(filter run.Filter) func() error {
		return func() error {
			_, err := s.AllRuns(ctx, "ws_1", filter, page)
			return err
		}
	}
	of := func(status run.Status) func() error {
		return func() error {
			_, err := s.Runs(ctx, "ws_1", "wf_1", status, page)
			return err
		}
	}
	const (
		byWorkspace = `SEARCH r USING (COVERING )?INDEX runs_by_workspace \(workspace_id=\? AND id>\? AND id<\?\)`
		byWorkflow  = `SEARCH r USING (COVERING )?INDEX runs_by_workflow \(workflow_id=\? AND id>\? AND id<\?\)`
		finished    = `SEARCH r USING (COVERING )?INDEX runs_finished \(workflow_id=\? AND status=\? AND id>\? AND id<\?\)`
	)
	now := clock.Now()
	for _, test := range []struct {
		name string
		call func() error
		want string // of one of its statements
	}{
		{"all", all(run.Filter{}), byWorkspace},
		{"all that succeeded", all(run.Filter{Status: run.Succeeded}), byWorkspace},
		{"all by the rest", all(run.Filter{Trigger: "x", Text: "y", StartedAfter: &now, StartedBefore: &now}), byWorkspace},
		{"all that failed", all(run.Filter{Status: run.Failed}), `SEARCH r USING (COVERING )?INDEX runs_unsuccessful \(workspace_id=\? AND status=\? AND id>\? AND id<\?\)`},
		{"all that were cancelled", all(run.Filter{Status: run.Cancelled}), `SEARCH r USING (COVERING )?INDEX runs_unsuccessful \(workspace_id=\? AND status=\? AND id>\? AND id<\?\)`},
		{"all that run", all(run.Filter{Status: run.Running}), `SEARCH q USING (COVERING )?INDEX run_queue_by_workspace \(workspace_id=\? AND run_id>\? AND run_id<\?\)`},
		{"all of a workflow", all(run.Filter{WorkflowID: "wf_1"}), byWorkflow},
		{"all of a workflow that failed", all(run.Filter{WorkflowID: "wf_1", Status: run.Failed}), finished},
		{"all of a workflow that run", all(run.Filter{WorkflowID: "wf_1", Status: run.Running}), `SEARCH q USING (COVERING )?INDEX run_queue_by_workflow \(workflow_id=\? AND run_id>\? AND run_id<\?\)`},
		{"of a workflow", of(""), `SEARCH r USING (COVERING )?INDEX runs_by_workflow \(workflow_id=\? AND id<\?\)`},
		{"of a workflow that failed", of(run.Failed), `SEARCH r USING (COVERING )?INDEX runs_finished \(workflow_id=\? AND status=\? AND id<\?\)`},
		{"of a workflow that run", of(run.Running), `SEARCH q USING (COVERING )?INDEX run_queue_by_workflow \(workflow_id=\? AND run_id<\?\)`},
		{"expired", func() error {
			_, err := s.Expired(ctx, "wf_1", auth.Free.Retention(), now, "", 500)
			return err
		}, `SEARCH runs USING COVERING INDEX runs_by_workflow \(workflow_id=\? AND id>\? AND id<\?\)`},
	} {
		t.Run(test.name, func(t *testing.T) {
			d.plans = nil
			if err := test.call(); err != nil {
				t.Fatal(err)
			}
			for _, plan := range d.plans {
				if strings.Contains(plan, "SCAN") || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "AUTOMATIC") {
					t.Errorf("the plan is %s", plan)
				}
			}
			if !slices.ContainsFunc(d.plans, regexp.MustCompile(test.want).MatchString) {
				t.Errorf("the plans are %q, want %s", d.plans, test.want)
			}
		})
	}
}

// What ends or starts a run that shares places, and the list of approvals, look
// only at runs that are not finished and have to do with it.
func TestQueryPlansOfWaitingRuns(t *testing.T) {
	t.Parallel()
	for _, analyzed := range []bool{false, true} {
		d := &planned{DB: open(t, newDir(t))}
		if analyzed {
			analyze(t, d.DB)
		}
		s := store.New(d, store.Notify{})
		const made = `INSERT INTO workflows (id, workspace_id, name, state, version, revision, created_at, updated_at, layout)
			VALUES ('wf_2', 'ws_1', 'n', 'draft', 1, 1, 0, 0, '{}')`
		const owner = `INSERT INTO workspaces (id, name, plan, requests_per_minute, data_key, created_at, updated_at) VALUES ('ws_1', 'n', 'free', 60, '', 0, 0)`
		if err := d.DB.Write(t.Context(), func(c store.Conn) error { return errors.Join(c.Do(owner), c.Do(made)) }); err != nil {
			t.Fatal(err)
		}
		for i, onLimit := range []workflow.OnLimit{workflow.Queue, workflow.Queue, workflow.CancelRunning} {
			r := run.Run{
				ID: fmt.Sprintf("run_x%d", i), WorkspaceID: "ws_1", WorkflowID: "wf_2", Status: run.Running, StartedAt: clock.Now(),
				ShareKey: "=k", Trigger: run.Trigger{Payload: []byte("{}")},
			}
			start := run.Start{Run: r, Revision: 1, Node: "node_1", Plan: auth.Free, Share: &workflow.Share{Limit: 1, OnLimit: onLimit}}
			start.Event.ID = r.ID
			if ok, err := s.StartRun(t.Context(), start); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
		if ok, err := s.CancelRun(t.Context(), run.Cancellation{WorkspaceID: "ws_1", RunID: "run_x2", At: clock.Now()}); err != nil || !ok {
			t.Fatal(ok, err)
		}
		if _, err := s.Approvals(t.Context(), "ws_1", paging.Request{Limit: 20}); err != nil {
			t.Fatal(err)
		}
		shared := 0
		for _, plan := range d.plans {
			if strings.Contains(plan, "run_queue_by_share (workflow_id=? AND share_key=? AND turn=?)") {
				shared++
			}
			if strings.Contains(plan, "SCAN") || strings.Contains(plan, "runs_by_workspace") || strings.Contains(plan, "run_queue_by_workflow") {
				t.Errorf("analyzed %v: the plan is %s", analyzed, plan)
			}
		}
		if last := d.plans[len(d.plans)-1]; shared < 6 || !strings.Contains(last, "INDEX run_queue_by_workspace (workspace_id=? AND run_id<?)") {
			t.Errorf("analyzed %v: the plans are %q", analyzed, d.plans)
		}
	}
}

// analyze gives SQLite statistics that would mislead it: few workflows, many
// runs, nearly all of one workspace.
func analyze(t *testing.T, db *sqlite.DB) {
	t.Helper()
	err := db.Write(t.Context(), func(c store.Conn) error {
		for i := range 500 {
			if _, err := c.Exec(`INSERT INTO runs (id, workspace_id, workflow_id, workflow_version, status, started_at, trigger_type, payload)
				VALUES ($1, 'ws_1', 'wf_1', 1, $2, 0, 'manual', '{}')`, fmt.Sprintf("run_%d", i), []string{"running", "succeeded", "failed", "cancelled"}[i%4]); err != nil {
				return err
			}
			if _, err := c.Exec(`INSERT INTO run_queue (run_id, workspace_id, workflow_id, epoch) VALUES ($1, 'ws_1', 'wf_1', 1)`, fmt.Sprintf("run_%d", i)); err != nil {
				return err
			}
		}
		if _, err := c.Exec(`INSERT INTO workflows (id, workspace_id, name, state, version, revision, created_at, updated_at, layout)
			VALUES ('wf_1', 'ws_1', 'n', 'draft', 1, 1, 0, 0, '{}')`); err != nil {
			return err
		}
		_, err := c.Exec(`ANALYZE`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
