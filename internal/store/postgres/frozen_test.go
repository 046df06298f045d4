package postgres_test

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/store"
)

// memory looks at what is in use whenever some more was written to it.
type memory struct {
	unseen, looks int
	most          uint64
}

// Write implements io.Writer.
func (m *memory) Write(data []byte) (int, error) {
	if m.unseen += len(data); m.unseen >= 32<<10 {
		m.unseen, m.looks, m.most = 0, m.looks+1, max(m.most, inUse())
	}
	return len(data), nil
}

func inUse() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// Rows that are large are exported one at a time, however many there are. Nothing
// else runs meanwhile: it is about what is in memory.
func TestExportOfLargeRows(t *testing.T) {
	const rows, size = 32, 1 << 20
	db := open(t, newDatabase(t))
	for n := range rows {
		text := make([]byte, 8<<10) // again and again: what is compressed well is so fast
		_, _ = rand.Read(text)
		err := db.Write(t.Context(), func(c store.Conn) error {
			return c.Do(`INSERT INTO steps (run_id, path, seq, name, type, status, attempt, started_at, attempt_at, output) VALUES ('run_1', $1, $2, '', '', '', 1, 1, 1, $3)`,
				fmt.Sprintf("%03d", n), n, strings.Repeat(hex.EncodeToString(text), size/2/len(text)))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	before, to := inUse(), &memory{}
	w, err := archive.NewWriter(to, archive.Header{Schema: store.Schema, Tables: store.Archived()})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.Export(t.Context(), db, w), w.Close()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MiB of rows, %d looks, %d KiB in memory", rows*size>>20, to.looks, (int64(to.most)-int64(before))>>10)
	if w.Rows() != rows || to.looks < 10 {
		t.Errorf("%d rows, %d looks at the memory", w.Rows(), to.looks)
	}
	if to.most > before+12*size {
		t.Errorf("%d MiB were in memory, %d MiB before", to.most>>20, before>>20)
	}
}

// Whoever reads a frozen view takes the time they need, also behind a pooler.
func TestFrozenIsNotHurried(t *testing.T) {
	t.Parallel()
	for _, pooled := range []bool{false, true} {
		opts := newDatabase(t)
		opts.Pooled = pooled
		limits := map[string]string{}
		err := open(t, opts).Frozen(t.Context(), func(c store.Conn) error {
			return c.Query(`SELECT name, setting FROM pg_settings WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout')`, nil, func(r store.Row) error {
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

// Whoever wants no more rows does not wait for those that are left.
func TestFrozenIsLeft(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	enough := errors.New("enough")
	began := time.Now()
	err := db.Frozen(t.Context(), func(c store.Conn) error {
		return c.Query(`SELECT repeat('x', 100000), pg_sleep(0.1) FROM generate_series(1, 1000)`, nil, func(store.Row) error { return enough })
	})
	if !errors.Is(err, enough) || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if err := db.Answers(t.Context()); err != nil {
		t.Error(err)
	}
	seen := 0
	if err := db.Frozen(t.Context(), func(c store.Conn) error {
		return c.Query(`SELECT n FROM generate_series(1, 3) n`, nil, func(store.Row) error { seen++; return nil })
	}); err != nil || seen != 3 {
		t.Errorf("%d rows: %v", seen, err)
	}
}
