package postgres_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
	"github.com/stepmill/stepmill/internal/store/storetest"
	"github.com/stepmill/stepmill/test/lane"
)

func TestCluster(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	log := &statementLog{texts: map[string]bool{}}
	t.Run("all", func(t *testing.T) {
		storetest.RunCluster(t, func(t *testing.T) database.Driver {
			return loggingDriver{postgrestest.Open(t, postgrestest.New(t)), log}
		})
	})
	t.Run("plans", func(t *testing.T) { checkPlans(t, log.texts) })
}

// checkPlans checks how the database finds a run in the queue if the queue was
// empty at the last ANALYZE. A plan is reused while the queue fills, and dead
// rows stay in the indexes for a while, so a statement about one run must use the
// primary key alone.
func checkPlans(t *testing.T, texts map[string]bool) {
	t.Helper()
	conn := connect(t, postgrestest.New(t))
	for _, text := range []string{
		`INSERT INTO run_queue (run_id, workspace_id, workflow_id, epoch, node, wake_at, slot, concurrency_key)
			SELECT 'run_' || n, 'ws', 'wf', 1, 'node', n, true, 'k' FROM generate_series(1, 1000) n`,
		`DELETE FROM run_queue`, `VACUUM ANALYZE run_queue`, `SET plan_cache_mode = force_generic_plan`,
	} {
		if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	known := regexp.MustCompile(`(UPDATE|DELETE FROM|FROM) run_queue\b.*\bWHERE (q\.|run_queue\.)?run_id = \$`)
	checked := 0
	for text := range texts {
		if !known.MatchString(strings.Join(strings.Fields(text), " ")) {
			continue
		}
		checked++
		if plan := planOf(t, conn, text); !usesPrimaryKey(plan) {
			t.Errorf("%s\n%s", text, strings.Join(plan, "\n"))
		}
	}
	t.Logf("%d of %d statements know which run it is", checked, len(texts))
	if checked < 10 {
		t.Errorf("only %d statements were checked", checked)
	}
}

// TestPlansOfRunLists checks that the list of a workspace's runs scans its index,
// even before the first ANALYZE.
func TestPlansOfRunLists(t *testing.T) {
	t.Parallel()
	opts, said := postgrestest.New(t), &statementLog{texts: map[string]bool{}}
	list := store.New(loggingDriver{postgrestest.Open(t, opts), said}, store.Notify{})
	for _, filter := range []run.Filter{{}, {Waiting: new(false)}} {
		if _, err := list.Runs.AllRuns(t.Context(), "ws_1", filter, paging.Request{Limit: 20}); err != nil {
			t.Fatal(err)
		}
	}
	conn := connect(t, opts)
	check := func(when string) {
		for text := range said.texts {
			plan := strings.Join(planOf(t, conn, text), "\n")
			if !strings.Contains(plan, "Index Scan Backward using runs_by_workspace") || strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan on run_queue") {
				t.Errorf("%s:\n%s\n%s", when, text, plan)
			}
		}
	}
	exec := func(text string) {
		if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	exec(`SET plan_cache_mode = force_generic_plan`)
	check("empty")
	exec(`INSERT INTO runs (id, workspace_id, workflow_id, workflow_version, status, started_at, trigger_type, payload)
		SELECT 'run_' || n, 'ws_' || n % 3, 'wf', 1, 'running', n, 'manual', '{}' FROM generate_series(1, 3000) n`)
	exec(`INSERT INTO run_queue (run_id, workspace_id, workflow_id, epoch) SELECT id, workspace_id, workflow_id, 1 FROM runs`)
	exec(`ANALYZE`)
	check("full")
}

// TestPlansOfConnections checks that what uses connections is found by indexes.
func TestPlansOfConnections(t *testing.T) {
	t.Parallel()
	opts, said := postgrestest.New(t), &statementLog{texts: map[string]bool{}}
	s := store.New(loggingDriver{postgrestest.Open(t, opts), said}, store.Notify{})
	if _, err := s.Connections.ConnectionUsage(t.Context(), "ws_1", []string{"a", "b", "c"}); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, opts)
	for _, text := range []string{
		`INSERT INTO workflows (id, workspace_id, name, state, version, revision, created_at, updated_at, layout, source_stale, pinned)
			SELECT 'wf_' || n, 'ws_' || n % 50, n, 'active', 1, 1, n, n, '{}', false, '{}' FROM generate_series(1, 5000) n`,
		`INSERT INTO connection_users (workflow_id, connection, workspace_id) SELECT id, 'c' || version, workspace_id FROM workflows`,
		`INSERT INTO connections (id, workspace_id, name, integration, auth, fields, learned, hosts, account, status, problem, credential, epoch, created_at, created_by, updated_at, updated_by)
			SELECT 'conn_' || n, 'ws_' || n % 50, n, '', '', '', '', '', '', '', '', '', 1, 1, '', 1, '' FROM generate_series(1, 5000) n`,
		`INSERT INTO connection_aliases (workspace_id, name, connection_id) SELECT workspace_id, 'was_' || name, id FROM connections`,
		`INSERT INTO run_queue (run_id, workspace_id, workflow_id, epoch) SELECT 'run_' || n, 'ws_' || n % 50, 'wf', 1 FROM generate_series(1, 5000) n`,
		`INSERT INTO steps (run_id, path, seq, name, type, status, attempt, started_at, attempt_at, awaits)
			SELECT run_id, 'a', 1, 'a', 'http.request', 'waiting', 1, 1, 1, 'connection/c1' FROM run_queue`,
		`ANALYZE`, `SET plan_cache_mode = force_generic_plan`,
	} {
		if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	for text := range said.texts {
		if plan := strings.Join(planOf(t, conn, text), "\n"); strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s\n%s", text, plan)
		}
	}
	if len(said.texts) != 3 {
		t.Errorf("%d statements", len(said.texts))
	}
}

// usesPrimaryKey reports whether a plan finds rows of the queue by the run's id,
// or by node and id.
func usesPrimaryKey(plan []string) bool {
	found := false
	for i, line := range plan {
		if !strings.Contains(line, "Scan") || !strings.Contains(line, "on run_queue") {
			continue
		}
		found = true
		condition := ""
		if i+1 < len(plan) {
			condition = plan[i+1]
		}
		named := strings.Contains(condition, "Index Cond: ") && strings.Contains(condition, "(run_id = ")
		if !named || !strings.Contains(line, "run_queue_pkey") && !(strings.Contains(line, "run_queue_by_node") && strings.Contains(condition, "(node = ")) {
			return false
		}
	}
	return found
}

// planOf returns the generic plan of a statement.
func planOf(t *testing.T, conn *pgx.Conn, text string) []string {
	t.Helper()
	const name = "plan"
	prepared, err := conn.Prepare(t.Context(), name, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer func() { _ = conn.Deallocate(t.Context(), name) }()
	args := strings.TrimSuffix(strings.Repeat("NULL, ", len(prepared.ParamOIDs)), ", ")
	rows, err := conn.Query(t.Context(), fmt.Sprintf("EXPLAIN (COSTS OFF) EXECUTE %s (%s)", name, args), pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return lines
}

// statementLog records the statements that were run.
type statementLog struct {
	mu    sync.Mutex
	texts map[string]bool
}

func (s *statementLog) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts[text] = true
}

// loggingDriver records the statements that it runs.
type loggingDriver struct {
	*postgres.DB
	said *statementLog
}

// Read implements store.Driver.
func (l loggingDriver) Read(ctx context.Context, fn func(database.Conn) error) error {
	return l.DB.Read(ctx, func(c database.Conn) error { return fn(loggingConn{c, l.said}) })
}

// Write implements store.Driver.
func (l loggingDriver) Write(ctx context.Context, fn func(database.Conn) error) error {
	return l.DB.Write(ctx, func(c database.Conn) error { return fn(loggingConn{c, l.said}) })
}

// WriteRun implements store.Driver.
func (l loggingDriver) WriteRun(ctx context.Context, runID string, fn func(database.Conn) error) error {
	return l.DB.WriteRun(ctx, runID, func(c database.Conn) error { return fn(loggingConn{c, l.said}) })
}

// ReadAll implements store.Driver.
func (l loggingDriver) ReadAll(ctx context.Context, queries func() []database.Query) error {
	return l.DB.ReadAll(ctx, func() []database.Query {
		all := queries()
		for _, q := range all {
			l.said.add(q.Statement)
		}
		return all
	})
}

type loggingConn struct {
	database.Conn
	said *statementLog
}

// Exec implements store.Conn.
func (h loggingConn) Exec(text string, args ...any) (int64, error) {
	h.said.add(text)
	return h.Conn.Exec(text, args...)
}

// Do implements store.Conn.
func (h loggingConn) Do(text string, args ...any) error {
	h.said.add(text)
	return h.Conn.Do(text, args...)
}

// Expect implements store.Conn.
func (h loggingConn) Expect(text string, args ...any) error {
	h.said.add(text)
	return h.Conn.Expect(text, args...)
}

// Query implements store.Conn.
func (h loggingConn) Query(text string, args []any, each func(database.Row) error) error {
	h.said.add(text)
	return h.Conn.Query(text, args, each)
}

// TestPlansOfRows checks that rows of tables are found by indexes and in order.
func TestPlansOfRows(t *testing.T) {
	t.Parallel()
	opts, said := postgrestest.New(t), &statementLog{texts: map[string]bool{}}
	calls, err := storetest.RowQueries(t.Context(), store.New(loggingDriver{postgrestest.Open(t, opts), said}, store.Notify{}))
	if err != nil {
		t.Fatal(err)
	}
	clear(said.texts)
	for name, call := range calls {
		if err := call(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	conn := connect(t, opts)
	for _, text := range []string{
		`INSERT INTO table_rows (table_id, id, workspace_id, unique_key, data, size, created_at, updated_at)
			SELECT 'tbl_' || n % 50, 'row_' || n, 'ws_1', 'k' || n, '{}', 2, n, n FROM generate_series(1, 10000) n`,
		`INSERT INTO table_index (table_id, column_id, value, row_id, workspace_id) SELECT table_id, 'c2', unique_key, id, workspace_id FROM table_rows`,
		`ANALYZE`, `SET plan_cache_mode = force_generic_plan`,
	} {
		if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	checked := 0
	for text := range said.texts {
		if !strings.Contains(text, "table_rows r") {
			continue
		}
		checked++
		if plan := strings.Join(planOf(t, conn, text), "\n"); strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s\n%s", text, plan)
		}
	}
	if checked != 8 {
		t.Errorf("%d statements were checked, want 8", checked)
	}
}

// TestPlansOfFiles checks that statements about files use indexes, above all those of
// the sweep.
func TestPlansOfFiles(t *testing.T) {
	t.Parallel()
	opts, said := postgrestest.New(t), &statementLog{texts: map[string]bool{}}
	if err := storetest.RunFileStatements(t.Context(), store.New(loggingDriver{postgrestest.Open(t, opts), said}, store.Notify{})); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, opts)
	for _, text := range []string{
		`INSERT INTO files (id, workspace_id, blob_id, name, type, size, sha256, holders, created_at, expires_at)
			SELECT 'file_' || n, 'ws_' || n % 50, 'b' || n, 'n', 't', 1, n, 0, n, CASE WHEN n % 100 = 0 THEN n END FROM generate_series(1, 10000) n`,
		`INSERT INTO file_blobs (id, workspace_id, sha256, size, files) SELECT blob_id, workspace_id, sha256, size, 1 FROM files`,
		`INSERT INTO file_refs (holder, file_id, workspace_id) SELECT 'run_' || id, id, workspace_id FROM files`,
		`INSERT INTO file_usage (owner, files, bytes) SELECT holder, 1, 1 FROM file_refs`,
		`INSERT INTO uploads (id, workspace_id, name, type, metadata, size, received, created_at, expires_at)
			SELECT id, workspace_id, 'n', 't', '', 1, 0, created_at, created_at FROM files`,
		`INSERT INTO upload_parts (upload_id, start, blob_id, size) SELECT id, 0, blob_id, 1 FROM files`,
		`ANALYZE`, `SET plan_cache_mode = force_generic_plan`,
	} {
		if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	about := regexp.MustCompile(`(FROM|UPDATE) (file|upload)`)
	checked := 0
	for text := range said.texts {
		if !about.MatchString(text) {
			continue
		}
		checked++
		if plan := strings.Join(planOf(t, conn, text), "\n"); strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s\n%s", text, plan)
		}
	}
	if checked < 15 {
		t.Errorf("only %d statements were checked", checked)
	}
}
