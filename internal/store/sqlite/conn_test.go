package sqlite_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/database"
)

func TestNumberedParameters(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	for statement, want := range map[string][]string{
		`SELECT $1 || $2 || $3`:                {"abc"},
		`SELECT $3 || $1`:                      {"ca"},
		`SELECT $2 || $1 || $2`:                {"bab"},
		`SELECT '$1'`:                          {"$1"},
		`SELECT $1 UNION ALL SELECT $2 || $11`: {"a", "bk"},
	} {
		for range 2 { // the second time from the cache
			var got []string
			err := db.Read(t.Context(), func(c database.Conn) (err error) {
				got, err = column(c, statement, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k")
				return err
			})
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", statement, err, diff)
			}
		}
	}
	for name, args := range map[string][]any{"too few": {"a"}, "none": nil, "of a strange type": {"a", struct{}{}}, "a float": {"a", 1.5}} {
		err := db.Read(t.Context(), func(c database.Conn) error {
			_, err := column(c, `SELECT $1, $2`, args...)
			return err
		})
		if err == nil {
			t.Errorf("%s: succeeded", name)
		}
	}
}

func TestBindingsDoNotLeak(t *testing.T) {
	t.Parallel()
	err := open(t, newDir(t)).Read(t.Context(), func(c database.Conn) error {
		for _, arg := range []any{"text", nil, "other"} {
			got := "untouched"
			if err := c.Query(`SELECT $1`, []any{arg}, func(r database.Row) error { return r.Scan(&got) }); err != nil {
				return err
			}
			want := "untouched"
			if arg != nil {
				want = arg.(string)
			}
			if got != want {
				t.Errorf("%v was read as %q", arg, got)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestValueRoundTrip(t *testing.T) {
	t.Parallel()
	type values struct {
		Text, EmptyText   string
		TextPtr, NilText  *string
		Int               int
		Int64             int64
		Yes, No           bool
		Bytes, NoBytes    []byte
		At                time.Time
		AtPtr, NilAt      *time.Time
		NullText          string
		NullInt           int
		NullBytes         []byte
		NullBool, NotNull bool
		NullAt            time.Time
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)
	text := "x"
	want := values{
		Text: "it's", TextPtr: &text, Int: -7, Int64: 1 << 62, Yes: true, Bytes: []byte{0, 255, 1}, NoBytes: []byte{},
		At: at, AtPtr: &at, NotNull: true,
	}
	var got values
	err := open(t, newDir(t)).Read(t.Context(), func(c database.Conn) error {
		return c.Query(`SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, NULL, NULL, NULL, NULL, $14, NULL`,
			[]any{
				want.Text, want.EmptyText, want.TextPtr, want.NilText, want.Int, want.Int64, want.Yes, want.No, want.Bytes, want.NoBytes,
				want.At, *want.AtPtr, nil, want.NotNull,
			},
			func(r database.Row) error {
				return r.Scan(&got.Text, &got.EmptyText, &got.TextPtr, &got.NilText, &got.Int, &got.Int64, &got.Yes, &got.No, &got.Bytes,
					&got.NoBytes, &got.At, &got.AtPtr, &got.NilAt, &got.NullText, &got.NullInt, &got.NullBytes, &got.NullBool, &got.NotNull, &got.NullAt)
			})
	})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestRowErrorStopsTheQuery(t *testing.T) {
	t.Parallel()
	stop := errors.New("enough")
	err := open(t, newDir(t)).Read(t.Context(), func(c database.Conn) error {
		for range 2 {
			rows := 0
			err := c.Query(`SELECT 1 UNION ALL SELECT 2`, nil, func(database.Row) error {
				rows++
				return stop
			})
			if !errors.Is(err, stop) || rows != 1 {
				t.Errorf("%d rows, %v", rows, err)
			}
		}
		var odd struct{}
		if err := c.Query(`SELECT 1`, nil, func(r database.Row) error { return r.Scan(&odd) }); err == nil {
			t.Error("a number was read into a struct")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestExecReturnsAffectedRows(t *testing.T) {
	t.Parallel()
	err := open(t, newDir(t)).Write(t.Context(), func(c database.Conn) error {
		for _, key := range []string{"a", "b", "c"} {
			if err := putKey(key)(c); err != nil {
				return err
			}
		}
		for _, step := range []struct {
			statement string
			want      int64
		}{
			{`UPDATE usage SET requests = 1 WHERE workspace_id <> 'a'`, 2},
			{`UPDATE usage SET requests = 1 WHERE workspace_id = 'z'`, 0},
			{`INSERT INTO usage VALUES ('a', '2026-01-01', 0, 0, 0, 0, 0) ON CONFLICT DO NOTHING`, 0},
			{`DELETE FROM usage`, 3},
			{`DELETE FROM usage`, 0},
		} {
			if n, err := c.Exec(step.statement); err != nil || n != step.want {
				t.Errorf("%s: %d, %v; want %d", step.statement, n, err, step.want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
