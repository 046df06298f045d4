package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
)

// A frozen view stays what it was while others write.
func TestFrozen(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	if err := db.Write(t.Context(), put("before")); err != nil {
		t.Fatal(err)
	}
	err := db.Frozen(t.Context(), func(c store.Conn) error {
		for range 3 {
			if got, err := column(c, allKeys); err != nil || !slices.Equal(got, []string{"before"}) {
				t.Errorf("it shows %v, %v", got, err)
			}
			if err := db.Write(t.Context(), put(time.Now().String())); err != nil {
				return err
			}
		}
		if _, err := c.Exec(`DELETE FROM usage`); err == nil {
			t.Error("it can be written to")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(keys(t, db)); got != 4 {
		t.Errorf("%d rows, want 4", got)
	}
}

func TestFrozenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Frozen(ctx, func(c store.Conn) error {
		cancel()
		_, err := column(c, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n`)
		return err
	})
	if err == nil {
		t.Error("it went on")
	}
	failed := errors.New("failed")
	if err := db.Frozen(t.Context(), func(store.Conn) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

// A disk that fills up while an import writes leaves what was there before:
// nothing.
func TestImportOnAFullDisk(t *testing.T) {
	t.Parallel()
	from, to := open(t, newDir(t)), open(t, newDir(t))
	err := from.Write(t.Context(), func(c store.Conn) error {
		for _, key := range numbered("a row of some length ", 5000) {
			if err := put(key)(c); err != nil {
				return err
			}
		}
		return install(c)
	})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w, err := archive.NewWriter(&file, archive.Header{Schema: store.Schema, Tables: store.Archived()})
	if err == nil {
		err = errors.Join(store.Export(t.Context(), from, w), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	imports := func() error {
		r, err := archive.NewReader(bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		return store.Import(t.Context(), to, r, time.Now())
	}
	limitPages(t, to, 20)
	isFault(t, "an import to a full disk", imports(), fault.StorageFull)
	if half, err := store.New(to, store.Notify{}).Half(t.Context()); half || err != nil {
		t.Errorf("half of it is left: %t, %v", half, err)
	}
	if got := keys(t, to); len(got) != 0 {
		t.Errorf("%d rows are left", len(got))
	}
	limitPages(t, to, 1000)
	if err := imports(); err != nil {
		t.Errorf("after there was room again: %v", err)
	}
	if got := keys(t, to); len(got) != 5000 {
		t.Errorf("%d rows", len(got))
	}
}
