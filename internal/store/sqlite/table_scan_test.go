package sqlite_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/store/storetest"
)

// slowDriver ends a read at its limit after a number of queries.
type slowDriver struct {
	*sqlite.DB
	queries int
}

func (d *slowDriver) Read(ctx context.Context, fn func(database.Conn) error) error {
	return d.DB.Read(ctx, func(c database.Conn) error { return fn(&slowConn{c, d.queries}) })
}

type slowConn struct {
	database.Conn
	left int
}

func (c *slowConn) Query(text string, args []any, each func(database.Row) error) error {
	if c.left--; c.left < 0 {
		return fault.New(fault.Unavailable, "the store is busy; try again")
	}
	return c.Conn.Query(text, args, each)
}

// A query that can never end in time is not reported as one that can be tried again, and
// the error says how to make it faster.
func TestScanThatTakesTooLong(t *testing.T) {
	t.Parallel()
	d := &slowDriver{DB: open(t, newDir(t)), queries: 1000}
	calls, err := storetest.RowQueries(t.Context(), store.New(d, store.Notify{}))
	if err != nil {
		t.Fatal(err)
	}
	err = d.Write(t.Context(), func(c database.Conn) error {
		return c.Do(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 110000)
			INSERT INTO table_rows (table_id, id, workspace_id, unique_key, data, size, created_at, updated_at)
			SELECT t.id, printf('row_%06d', i), t.workspace_id, printf('1%06d', i), '{}', 2, 0, 0 FROM data_tables t, n`)
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		queries  int
		code     fault.Code
		mentions string
	}{
		"filter":      {540, fault.InvalidRequest, "/filter: takes too long in a table of this size, after reading 107800 rows: add a condition on the key"},
		"sort":        {540, fault.InvalidRequest, "/sort: takes too long in a table of this size, after reading 107800 rows: sort by the key or by an indexed column"},
		"sort by key": {1, fault.Unavailable, "try again"},
		"all":         {1, fault.Unavailable, "try again"},
	} {
		d.queries = tc.queries
		err := calls[name]()
		if f, ok := fault.As(err); !ok || f.Code != tc.code || !strings.Contains(f.Message, tc.mentions) {
			t.Errorf("%s: %v", name, err)
		}
		d.queries = 1000
		if err := calls[name](); err != nil {
			t.Errorf("%s, in time: %v", name, err)
		}
	}
	d.queries = 400
	if err := calls["filter"](); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a read that was slow for another reason: %v", err)
	}
}
