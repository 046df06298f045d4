package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
)

// nonZero returns the counts that are not zero.
func nonZero(counts map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for name, n := range counts {
		if n != 0 {
			out[name] = n
		}
	}
	return out
}

// connections returns the total of all connections.
func connections(s store.Stats) (total int64) {
	for _, n := range s.Connections {
		total += n
	}
	return total
}

func TestStats(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t, postgrestest.New(t))
	put := func(id string) func(database.Conn) error {
		return func(c database.Conn) error {
			_, err := c.Exec(`INSERT INTO rate_windows (window_start, workspace_id, taken, granted) VALUES (1, $1, 1, 1)`, id)
			return err
		}
	}
	most := connections(db.Stats())
	rule := errors.New("a rule")
	const together = 100
	var wg sync.WaitGroup
	for i := range together {
		id := fmt.Sprintf("run_%d", i)
		wg.Go(func() {
			if err := db.WriteRun(t.Context(), id, put(id)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := db.Write(t.Context(), func(c database.Conn) error { return errors.Join(put("x")(c), rule) }); !errors.Is(err, rule) {
		t.Error(err)
	}
	stats := db.Stats()
	if diff := cmp.Diff(map[string]int64{store.TransactionCommitted: together, store.TransactionRolledBack: 1}, nonZero(stats.Transactions)); diff != "" {
		t.Errorf("transactions (-want +got):\n%s", diff)
	}
	if stats.Groups.Sum != together || stats.Groups.Total() != stats.Commits.Total() || stats.Groups.Total() > together || stats.Commits.Sum <= 0 {
		t.Errorf("%+v", stats)
	}
	if len(nonZero(stats.Errors)) != 0 || stats.Waiting != 0 || stats.Connections["idle"] == 0 || connections(stats) != most {
		t.Errorf("%+v", stats)
	}
	for _, statement := range []string{`SELECT nonsense`, `INSERT INTO rate_windows (window_start) VALUES (1)`} {
		if err := db.Write(t.Context(), func(c database.Conn) error { _, err := c.Exec(statement); return err }); err == nil {
			t.Errorf("%s succeeded", statement)
		}
	}
	stats = db.Stats()
	if stats.Transactions[store.TransactionFailed] != 2 {
		t.Errorf("transactions: %v", stats.Transactions)
	}
	if diff := cmp.Diff(map[string]int64{"other": 2}, nonZero(stats.Errors)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}
