package postgres

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/test/lane"
)

func effectOnly(text string, args ...any) *statement {
	s := newStatement(text, args, false)
	s.effectOnly = true
	return s
}

func texts(of []*statement) string {
	var all []string
	for _, s := range of {
		all = append(all, s.text)
	}
	return strings.Join(all, " ")
}

func TestInterleave(t *testing.T) {
	t.Parallel()
	tx := func(list string) (of []*statement) {
		for text := range strings.FieldsSeq(list) {
			of = append(of, effectOnly(text))
		}
		return of
	}
	for want, txs := range map[string][]string{
		"":          {},
		"a b":       {"a b"},
		"a a b b":   {"a b", "a b"},
		"a a a b c": {"a a b", "a c"},
		"a b b c c": {"a b c", "b c"},
	} {
		var lists [][]*statement
		for _, u := range txs {
			lists = append(lists, tx(u))
		}
		if got := texts(interleave(lists)); got != want {
			t.Errorf("%v: %s, want %s", txs, got, want)
		}
	}
}

// TestInterleaveKeepsOrder checks that the statements of each transaction stay in
// order and none is lost.
func TestInterleaveKeepsOrder(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		txs := make([][]*statement, rapid.IntRange(0, 8).Draw(t, "transactions"))
		total := 0
		for i := range txs {
			for n := range rapid.IntRange(0, 6).Draw(t, "statements") {
				txs[i] = append(txs[i], effectOnly(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "text"), i, n))
				total++
			}
		}
		all := interleave(txs)
		if len(all) != total {
			t.Fatalf("%d of %d statements", len(all), total)
		}
		next := map[any]int{}
		for _, s := range all {
			if s.args[1] != next[s.args[0]] {
				t.Fatalf("transaction %v: got statement %v, want %d", s.args[0], s.args[1], next[s.args[0]])
			}
			next[s.args[0]]++
		}
	})
}

func TestMerge(t *testing.T) {
	t.Parallel()
	const (
		insert = "INSERT INTO t (a, b, c)\n\tVALUES ($1, 'x', $2) ON CONFLICT (a) DO NOTHING"
		update = `UPDATE t SET a = $1`
		lock   = `SELECT pg_advisory_xact_lock($1)`
	)
	many := func(n int, one func(i int) *statement) (of []*statement) {
		for i := range n {
			of = append(of, one(i))
		}
		return of
	}
	t.Run("rows", func(t *testing.T) {
		t.Parallel()
		got := merge(many(7, func(i int) *statement { return effectOnly(insert, i, -i) }))
		want := []string{
			"INSERT INTO t (a, b, c)\n\tVALUES ($1, 'x', $2), ($3, 'x', $4), ($5, 'x', $6), ($7, 'x', $8) ON CONFLICT (a) DO NOTHING",
			"INSERT INTO t (a, b, c)\n\tVALUES ($1, 'x', $2), ($3, 'x', $4) ON CONFLICT (a) DO NOTHING", insert,
		}
		var args []any
		for i, s := range got {
			if len(got) != len(want) || s.text != want[i] {
				t.Fatalf("%d statements: %s", len(got), s.text)
			}
			args = append(args, s.args...)
		}
		if !slices.Equal(args, []any{0, 0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6}) {
			t.Errorf("%v", args)
		}
	})
	t.Run("rows whose result is needed", func(t *testing.T) {
		t.Parallel()
		if got := merge(many(3, func(i int) *statement { return newStatement(insert, []any{i, i}, false) })); len(got) != 3 {
			t.Errorf("%d statements", len(got))
		}
	})
	t.Run("statements that are not plain inserts", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{update, `INSERT INTO t SELECT $1`, `INSERT INTO t (a) VALUES ($1) ON CONFLICT (a) DO UPDATE SET a = $1`, `INSERT INTO t (a) VALUES (lower($1))`} {
			if got := merge(many(3, func(i int) *statement { return effectOnly(text, i) })); len(got) != 3 {
				t.Errorf("%s: %d statements", text, len(got))
			}
		}
	})
	t.Run("rows that are updated if they exist", func(t *testing.T) {
		t.Parallel()
		const upsert = "INSERT INTO t (a, b, c)\n\t\tVALUES ($1, $2, $3)\n\t\tON CONFLICT (a, b) DO UPDATE SET c = excluded.c"
		row := func(a, b string, c int) *statement { return effectOnly(upsert, a, b, c) }
		got := merge([]*statement{row("r", "x", 1), row("r", "y", 2), row("s", "x", 3), row("r", "y", 4), row("s", "y", 5)})
		var args [][]any
		for _, s := range got {
			args = append(args, s.args)
		}
		want := [][]any{{"r", "x", 1, "r", "y", 2}, {"s", "x", 3}, {"r", "y", 4, "s", "y", 5}}
		if !slices.EqualFunc(args, want, slices.Equal) {
			t.Errorf("%v, want %v", args, want)
		}
	})
	t.Run("locks", func(t *testing.T) {
		t.Parallel()
		got := merge(many(3, func(i int) *statement {
			s := newStatement(lock, []any{int64(-i)}, false)
			s.lock = true
			return s
		}))
		if len(got) != 1 || got[0].text != `SELECT pg_advisory_xact_lock(n) FROM unnest($1::bigint[]) AS n` || !slices.Equal(got[0].args[0].([]int64), []int64{-2, -1, 0}) {
			t.Errorf("%d statements: %s %v", len(got), got[0].text, got[0].args)
		}
	})
	t.Run("expectations", func(t *testing.T) {
		t.Parallel()
		all := many(4, func(i int) *statement {
			s := newStatement(`SELECT id FROM t WHERE id = $1`, []any{i % 2}, false)
			s.expect = true
			return s
		})
		sent := merge(all)
		if len(sent) != 2 {
			t.Fatalf("%d statements", len(sent))
		}
		sent[0].affected = 1
		for i, s := range all {
			if s.failedExpectation() != (i%2 == 1) {
				t.Errorf("statement %d: %t", i, s.failedExpectation())
			}
		}
	})
}

func TestSumTallies(t *testing.T) {
	t.Parallel()
	tally := func(n int64, args ...any) *statement {
		s := newStatement(`UPDATE t SET n = n + $1 WHERE id = $2`, append([]any{n}, args...), true)
		s.onCommit = func(database.Row) error { return nil }
		return s
	}
	all := []*statement{tally(1, "a"), tally(2, "b"), tally(4, "a"), tally(8, "b"), tally(16, "c")}
	sent := merge(all)
	if len(sent) != 3 || sent[0].args[0] != int64(5) || sent[1].args[0] != int64(10) || sent[2].args[0] != int64(16) {
		t.Fatalf("%d statements: %+v", len(sent), sent)
	}
	if all[0].args[0] != int64(1) {
		t.Error("the original statement was changed, but it may be run again on its own")
	}
	for i, want := range []int{0, 1, 0, 1, 2} {
		if all[i].sentAs != sent[want] {
			t.Errorf("statement %d gets the rows of another", i)
		}
	}
}

// TestOrderStatements checks that rows of runs are touched in the order of the
// group, whatever else is merged.
func TestOrderStatements(t *testing.T) {
	t.Parallel()
	fence := func(text, run string) *statement {
		s := newStatement(text, []any{run}, false)
		s.expect = true
		return s
	}
	end := newStatement(`lock`, []any{int64(1)}, false)
	end.lock, end.atEnd = true, true
	parts := [][]*statement{
		{fence(`UPDATE`, "r1"), effectOnly(`INSERT`, "r1"), end, effectOnly(`EVENT`, "r1")},
		{fence(`DELETE`, "r2"), effectOnly(`INSERT`, "r2"), end, effectOnly(`EVENT`, "r2")},
		{fence(`UPDATE`, "r3"), effectOnly(`INSERT`, "r3")},
	}
	group := make([]*groupedTx, len(parts))
	for i, part := range parts {
		group[i] = &groupedTx{ready: part}
	}
	if got := texts(orderStatements(group, parts)); got != "UPDATE DELETE UPDATE INSERT INSERT INSERT lock lock lock lock EVENT EVENT" {
		t.Error(got)
	}
}
