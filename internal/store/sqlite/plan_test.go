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
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/search"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/store/storetest"
	"github.com/stepmill/stepmill/internal/workflow"
)

// planningDriver records SQLite's plan for each query.
type planningDriver struct {
	*sqlite.DB
	plans []string
}

func (d *planningDriver) Read(ctx context.Context, fn func(database.Conn) error) error {
	return d.DB.Read(ctx, func(c database.Conn) error { return fn(planningConn{c, d}) })
}

func (d *planningDriver) Write(ctx context.Context, fn func(database.Conn) error) error {
	return d.DB.Write(ctx, func(c database.Conn) error { return fn(planningConn{c, d}) })
}

type planningConn struct {
	database.Conn
	to *planningDriver
}

func (c planningConn) Exec(text string, args ...any) (int64, error) {
	if err := c.explain(text, args); err != nil {
		return 0, err
	}
	return c.Conn.Exec(text, args...)
}

func (c planningConn) Query(text string, args []any, each func(database.Row) error) error {
	if err := c.explain(text, args); err != nil {
		return err
	}
	return c.Conn.Query(text, args, each)
}

func (c planningConn) explain(text string, args []any) error {
	var lines []string
	err := c.Conn.Query("EXPLAIN QUERY PLAN "+text, args, func(r database.Row) error {
		id, parent, unused, line := 0, 0, 0, ""
		err := r.Scan(&id, &parent, &unused, &line)
		lines = append(lines, line)
		return err
	})
	c.to.plans = append(c.to.plans, strings.Join(lines, "; "))
	return err
}

// TestQueryPlansOfRuns checks that lists of runs and their removal scan an index,
// with and without statistics.
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
	d := &planningDriver{DB: open(t, newDir(t))}
	if analyzed {
		analyze(t, d.DB)
	}
	ctx, s, page := t.Context(), store.New(d, store.Notify{}), paging.Request{Limit: 20}
	all := func(filter run.Filter) func() error {
		return func() error {
			_, err := s.Runs.AllRuns(ctx, "ws_1", filter, page)
			return err
		}
	}
	of := func(status run.Status) func() error {
		return func() error {
			_, err := s.Runs.Runs(ctx, "ws_1", "wf_1", status, page)
			return err
		}
	}
	const (
		byWorkspace = `SEARCH r USING (COVERING )?INDEX runs_by_workspace \(\(workspace_id,id\)>\(\?,\?\) AND \(workspace_id,id\)<\(\?,\?\)\)`
		byWorkflow  = `SEARCH r USING (COVERING )?INDEX runs_by_workflow \(workflow_id=\? AND id>\? AND id<\?\)`
		finished    = `SEARCH r USING (COVERING )?INDEX runs_finished \(workflow_id=\? AND status=\? AND id>\? AND id<\?\)`
	)
	now := clock.Now()
	for _, test := range []struct {
		name string
		call func() error
		want string // the expected plan of one of its statements
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
		{"all that wait", all(run.Filter{Status: run.Running, Waiting: new(true)}), `SEARCH q USING (COVERING )?INDEX run_queue_by_workspace \(workspace_id=\? AND run_id>\? AND run_id<\?\)`},
		{"all that do not wait", all(run.Filter{Waiting: new(false)}), byWorkspace},
		{"all of a workflow that wait", all(run.Filter{WorkflowID: "wf_1", Status: run.Running, Waiting: new(true)}), `SEARCH q USING (COVERING )?INDEX run_queue_by_workflow \(workflow_id=\? AND run_id>\? AND run_id<\?\)`},
		{"all of a workflow that do not wait", all(run.Filter{WorkflowID: "wf_1", Waiting: new(false)}), byWorkflow},
		{"of a workflow", of(""), `SEARCH r USING (COVERING )?INDEX runs_by_workflow \(workflow_id=\? AND id<\?\)`},
		{"of a workflow that failed", of(run.Failed), `SEARCH r USING (COVERING )?INDEX runs_finished \(workflow_id=\? AND status=\? AND id<\?\)`},
		{"of a workflow that run", of(run.Running), `SEARCH q USING (COVERING )?INDEX run_queue_by_workflow \(workflow_id=\? AND run_id<\?\)`},
		{"expired", func() error {
			_, err := s.Runs.Expired(ctx, "wf_1", auth.Free.Retention(), now, "", 500)
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

// TestQueryPlansOfWorkflows checks that lists and searches of workflows read only
// an index. Rows of the table contain whole definitions, which SQLite would read
// to find a row by its key.
func TestQueryPlansOfWorkflows(t *testing.T) {
	t.Parallel()
	words, err := search.Parse("x")
	if err != nil {
		t.Fatal(err)
	}
	for _, analyzed := range []bool{false, true} {
		d := &planningDriver{DB: open(t, newDir(t))}
		if analyzed {
			analyze(t, d.DB)
		}
		ctx, s, page := t.Context(), store.New(d, store.Notify{}), paging.Request{Limit: 20}
		if _, err := s.Workflows.SearchWorkflows(ctx, "ws_1", words, 20); err != nil {
			t.Fatal(err)
		}
		for _, filter := range []workflow.Filter{{}, {Words: words}, {State: workflow.Active}, {State: workflow.Active, Words: words}} {
			if _, err := s.Workflows.Workflows(ctx, "ws_1", filter, page); err != nil {
				t.Fatal(err)
			}
		}
		for i, plan := range d.plans {
			if !strings.HasPrefix(plan, "SEARCH workflows USING COVERING INDEX workflows_") || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("analyzed %t, statement %d: the plan is %s", analyzed, i, plan)
			}
		}
		if want := "workflows_by_state (workspace_id=? AND state=? AND id<?)"; !strings.Contains(d.plans[3], want) {
			t.Errorf("analyzed %t: the plan of a list by state is %s, want %s", analyzed, d.plans[3], want)
		}
	}
}

// TestQueryPlansOfWaitingRuns checks that starting or ending a run with a
// concurrency limit, and the list of approvals, read only the unfinished runs
// concerned.
func TestQueryPlansOfWaitingRuns(t *testing.T) {
	t.Parallel()
	for _, analyzed := range []bool{false, true} {
		d := &planningDriver{DB: open(t, newDir(t))}
		if analyzed {
			analyze(t, d.DB)
		}
		s := store.New(d, store.Notify{})
		const made = `INSERT INTO workflows (id, workspace_id, name, state, version, revision, created_at, updated_at, layout)
			VALUES ('wf_2', 'ws_1', 'n', 'draft', 1, 1, 0, 0, '{}')`
		const owner = `INSERT INTO workspaces (id, name, plan, requests_per_minute, data_key, created_at, updated_at) VALUES ('ws_1', 'n', 'free', 60, '', 0, 0)`
		if err := d.DB.Write(t.Context(), func(c database.Conn) error { return errors.Join(c.Do(owner), c.Do(made)) }); err != nil {
			t.Fatal(err)
		}
		for i, onLimit := range []workflow.OnLimit{workflow.Queue, workflow.Queue, workflow.CancelRunning} {
			r := run.Run{
				ID: fmt.Sprintf("run_x%d", i), WorkspaceID: "ws_1", WorkflowID: "wf_2", Status: run.Running, StartedAt: clock.Now(),
				ConcurrencyKey: "=k", Trigger: run.Trigger{Payload: []byte("{}")},
			}
			start := run.Start{Run: r, Revision: 1, Node: "node_1", Plan: auth.Free, Concurrency: &workflow.ConcurrencyLimit{Limit: 1, OnLimit: onLimit}}
			start.Event.ID = r.ID
			if ok, err := s.Runs.StartRun(t.Context(), start); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
		if ok, err := s.Runs.CancelRun(t.Context(), run.Cancellation{WorkspaceID: "ws_1", RunID: "run_x2", At: clock.Now()}); err != nil || !ok {
			t.Fatal(ok, err)
		}
		if _, err := s.Runs.Approvals(t.Context(), "ws_1", paging.Request{Limit: 20}); err != nil {
			t.Fatal(err)
		}
		shared := 0
		for _, plan := range d.plans {
			if strings.Contains(plan, "run_queue_by_concurrency_key (workflow_id=? AND concurrency_key=? AND admitted=?)") {
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

// analyze gives SQLite misleading statistics: few workflows, many runs, nearly
// all in one workspace.
func analyze(t *testing.T, db *sqlite.DB) {
	t.Helper()
	err := db.Write(t.Context(), func(c database.Conn) error {
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

// TestQueryPlansOfConnections checks that a page of connections, with what uses them,
// is found by indexes in a fixed number of statements.
func TestQueryPlansOfConnections(t *testing.T) {
	t.Parallel()
	scanned := regexp.MustCompile(`SCAN [a-z]\b|AUTOMATIC`) // of a table, not of a subquery
	for _, analyzed := range []bool{false, true} {
		d := &planningDriver{DB: open(t, newDir(t))}
		if analyzed {
			analyze(t, d.DB)
		}
		ctx, s := t.Context(), store.New(d, store.Notify{})
		if _, err := s.Connections.Connections(ctx, "ws_1", paging.Request{Limit: 20}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Connections.ConnectionUsage(ctx, "ws_1", []string{"a", "b", "c"}); err != nil {
			t.Fatal(err)
		}
		if len(d.plans) != 4 {
			t.Errorf("%d statements", len(d.plans))
		}
		for i, want := range []string{
			`SEARCH connections USING INDEX connections_by_name (workspace_id=? AND name>?)`,
			`SEARCH a USING COVERING INDEX connection_aliases_by_connection (connection_id=? AND workspace_id=?)`,
			`SEARCH u USING COVERING INDEX connection_users_by_name (workspace_id=? AND connection=?`,
			`SEARCH q USING COVERING INDEX run_queue_by_workspace (workspace_id=?)`,
		} {
			if plan := d.plans[i]; !strings.Contains(plan, want) || scanned.MatchString(plan) {
				t.Errorf("analyzed %t, statement %d: the plan is %s", analyzed, i, plan)
			}
		}
	}
}

// TestQueryPlansOfRows checks that rows of tables are found by the unique key, by an
// index and by their ids, without sorting.
func TestQueryPlansOfRows(t *testing.T) {
	t.Parallel()
	d := &planningDriver{DB: open(t, newDir(t))}
	s := store.New(d, store.Notify{})
	calls, err := storetest.RowQueries(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	const byRow = `; SEARCH r USING PRIMARY KEY \(table_id=\? AND id=\?\)$`
	for name, want := range map[string]string{
		"by id":              `^SEARCH r USING PRIMARY KEY \(table_id=\? AND id=\?\)$`,
		"by key":             `^SEARCH r USING INDEX table_rows_by_key \(table_id=\? AND unique_key=\?\)$`,
		"by keys":            `SEARCH r USING INDEX table_rows_by_key \(table_id=\? AND unique_key=\?\)$`,
		"range of keys":      `^SEARCH r USING INDEX table_rows_by_key \(table_id=\? AND .*unique_key.*\)$`,
		"sort by key":        `^SEARCH r USING INDEX table_rows_by_key \(table_id=\? AND .*unique_key.*\)$`,
		"sort by key desc":   `^SEARCH r USING INDEX table_rows_by_key \(table_id=\? AND .*unique_key.*\)$`,
		"filter by key":      `^SEARCH r USING INDEX table_rows_by_key \(table_id=\? AND unique_key=\?\)$`,
		"all":                `^SEARCH r USING PRIMARY KEY \(table_id=\? AND id>\?\)$`,
		"filter":             `^SEARCH r USING PRIMARY KEY \(table_id=\? AND id>\?\)$`,
		"sort":               `^SEARCH r USING PRIMARY KEY \(table_id=\? AND id>\?\)$`,
		"filter by index":    `^SEARCH i USING PRIMARY KEY \(table_id=\? AND column_id=\? AND .*value.*\)` + byRow,
		"sort by index":      `^SEARCH i USING PRIMARY KEY \(table_id=\? AND column_id=\? AND .*value.*\)` + byRow,
		"sort by index desc": `^SEARCH i USING PRIMARY KEY \(table_id=\? AND column_id=\? AND .*value.*\)` + byRow,
	} {
		d.plans = nil
		if err := calls[name](); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.ContainsFunc(d.plans, regexp.MustCompile(want).MatchString) {
			t.Errorf("%s: %s", name, strings.Join(d.plans, "\n"))
		}
	}
}

// TestQueryPlansOfFiles checks that no statement about files reads or sorts a whole
// table, above all those of the sweep.
func TestQueryPlansOfFiles(t *testing.T) {
	t.Parallel()
	d := &planningDriver{DB: open(t, newDir(t))}
	if err := storetest.RunFileStatements(t.Context(), store.New(d, store.Notify{})); err != nil {
		t.Fatal(err)
	}
	// The list of abandoned blobs is read from its start.
	bad := regexp.MustCompile(`SCAN (files|file_blobs|file_refs|file_usage|uploads|upload_parts)|TEMP B-TREE`)
	for _, plan := range d.plans {
		if bad.MatchString(plan) {
			t.Error(plan)
		}
	}
	if all := strings.Join(d.plans, "\n"); !strings.Contains(all, "files_expiring") || !strings.Contains(all, "uploads_expiring") {
		t.Errorf("the sweep does not use its indexes:\n%s", all)
	}
}
