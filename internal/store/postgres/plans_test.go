package postgres_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/storetest"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	said := &said{texts: map[string]bool{}}
	t.Run("all", func(t *testing.T) {
		storetest.RunCluster(t, func(t *testing.T) store.Driver { return listener{open(t, newDatabase(t)), said} })
	})
	t.Run("plans", func(t *testing.T) { checkPlans(t, said.texts) })
}

// checkPlans looks at how the database would find a run in the queue, whose
// statistics it has taken when there was nothing in it. A plan is kept while the
// queue fills, and what has left it stays in its indexes for a while: whoever knows
// which run it is finds it by its key alone.
func checkPlans(t *testing.T, texts map[string]bool) {
	t.Helper()
	conn := connect(t, newDatabase(t))
	for _, text := range []string{
		`INSERT INTO run_queue (run_id, workspace_id, workflow_id, epoch, node, wake_at, slot, share_key)
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
		if plan := planOf(t, conn, text); !byKey(plan) {
			t.Errorf("%s\n%s", text, strings.Join(plan, "\n"))
		}
	}
	t.Logf("%d of %d statements know which run it is", checked, len(texts))
	if checked < 10 {
		t.Errorf("only %d statements were looked at", checked)
	}
}

// byKey tells whether a plan finds rows of the queue by the key of a run, or by its
// node and its key.
func byKey(plan []string) bool {
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

// planOf is how the database runs a statement, whatever its arguments are.
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

// said are the statements that units have run.
type said struct {
	mu    sync.Mutex
	texts map[string]bool
}

func (s *said) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts[text] = true
}

// listener is a database that keeps what is said to it.
type listener struct {
	*postgres.DB
	said *said
}

// Read implements store.Driver.
func (l listener) Read(ctx context.Context, fn func(store.Conn) error) error {
	return l.DB.Read(ctx, func(c store.Conn) error { return fn(heard{c, l.said}) })
}

// Write implements store.Driver.
func (l listener) Write(ctx context.Context, fn func(store.Conn) error) error {
	return l.DB.Write(ctx, func(c store.Conn) error { return fn(heard{c, l.said}) })
}

// WriteRun implements store.Driver.
func (l listener) WriteRun(ctx context.Context, runID string, fn func(store.Conn) error) error {
	return l.DB.WriteRun(ctx, runID, func(c store.Conn) error { return fn(heard{c, l.said}) })
}

// ReadAll implements store.Driver.
func (l listener) ReadAll(ctx context.Context, queries func() []store.Query) error {
	return l.DB.ReadAll(ctx, func() []store.Query {
		all := queries()
		for _, q := range all {
			l.said.note(q.Statement)
		}
		return all
	})
}

type heard struct {
	store.Conn
	said *said
}

// Exec implements store.Conn.
func (h heard) Exec(text string, args ...any) (int64, error) {
	h.said.note(text)
	return h.Conn.Exec(text, args...)
}

// Do implements store.Conn.
func (h heard) Do(text string, args ...any) error {
	h.said.note(text)
	return h.Conn.Do(text, args...)
}

// Expect implements store.Conn.
func (h heard) Expect(text string, args ...any) error {
	h.said.note(text)
	return h.Conn.Expect(text, args...)
}

// Query implements store.Conn.
func (h heard) Query(text string, args []any, each func(store.Row) error) error {
	h.said.note(text)
	return h.Conn.Query(text, args, each)
}
