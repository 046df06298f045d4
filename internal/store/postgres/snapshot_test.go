package postgres_test

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/migrations"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
	"github.com/stepmill/stepmill/test/lane"
)

// memoryMeter samples the memory in use whenever more data is written to it.
type memoryMeter struct {
	unseen, samples int
	most            uint64
}

// Write implements io.Writer.
func (m *memoryMeter) Write(data []byte) (int, error) {
	if m.unseen += len(data); m.unseen >= 32<<10 {
		m.unseen, m.samples, m.most = 0, m.samples+1, max(m.most, inUse())
	}
	return len(data), nil
}

func inUse() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestExportOfLargeRows checks that large rows are streamed. It does not run in
// parallel, because it measures memory.
func TestExportOfLargeRows(t *testing.T) {
	lane.NotShort(t)
	const rows, size = 32, 1 << 20
	db := postgrestest.Open(t, postgrestest.New(t))
	for n := range rows {
		text := make([]byte, 8<<10) // repetitive data compresses fast
		_, _ = rand.Read(text)
		err := db.Write(t.Context(), func(c database.Conn) error {
			return c.Do(`INSERT INTO steps (run_id, path, seq, name, type, status, attempt, started_at, attempt_at, output) VALUES ('run_1', $1, $2, '', '', '', 1, 1, 1, $3)`,
				fmt.Sprintf("%03d", n), n, strings.Repeat(hex.EncodeToString(text), size/2/len(text)))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	before, to := inUse(), &memoryMeter{}
	w, err := archive.NewWriter(to, archive.Header{Schema: migrations.Last(), Tables: store.Archived()})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.Export(t.Context(), db, nil, w), w.Close()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MiB of rows, %d looks, %d KiB in memory", rows*size>>20, to.samples, (int64(to.most)-int64(before))>>10)
	if w.Rows() != rows || to.samples < 10 {
		t.Errorf("%d rows, %d samples of the memory", w.Rows(), to.samples)
	}
	if to.most > before+12*size {
		t.Errorf("%d MiB were in memory, %d MiB before", to.most>>20, before>>20)
	}
}

// TestReadSnapshotHasNoTimeouts checks that a snapshot can be read slowly, also
// behind a pooler.
func TestReadSnapshotHasNoTimeouts(t *testing.T) {
	t.Parallel()
	for _, pooled := range []bool{false, true} {
		opts := postgrestest.New(t)
		opts.Pooled = pooled
		limits := map[string]string{}
		err := postgrestest.Open(t, opts).ReadSnapshot(t.Context(), func(c database.Conn) error {
			return c.Query(`SELECT name, setting FROM pg_settings WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout')`, nil, func(r database.Row) error {
				var name, setting string
				err := r.Scan(&name, &setting)
				limits[name] = setting
				return err
			})
		})
		if err != nil || len(limits) != 2 {
			t.Fatal(limits, err)
		}
		for name, setting := range limits {
			if setting != "0" {
				t.Errorf("pooled %t: %s is %s", pooled, name, setting)
			}
		}
	}
}

// TestReadSnapshotStopsEarly checks that a reader that needs no more rows does
// not wait for the rest, which would take hours here.
func TestReadSnapshotStopsEarly(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t, postgrestest.New(t))
	enough := errors.New("enough")
	err := db.ReadSnapshot(t.Context(), func(c database.Conn) error {
		return c.Query(`SELECT repeat('x', 100000), pg_sleep(0.1) FROM generate_series(1, 100000)`, nil, func(database.Row) error { return enough })
	})
	if !errors.Is(err, enough) {
		t.Errorf("the query ended with %v", err)
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	seen := 0
	if err := db.ReadSnapshot(t.Context(), func(c database.Conn) error {
		return c.Query(`SELECT n FROM generate_series(1, 3) n`, nil, func(database.Row) error { seen++; return nil })
	}); err != nil || seen != 3 {
		t.Errorf("%d rows: %v", seen, err)
	}
}
