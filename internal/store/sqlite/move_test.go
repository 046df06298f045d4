package sqlite_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

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
