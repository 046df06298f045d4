package storetest

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/table"
	"github.com/stepmill/stepmill/test/lane"
)

// filterColumns are the columns that random filters use, with values that are likely
// to be equal, to be prefixes of each other, or to share their first 200 bytes.
var filterColumns = map[string][]string{
	"city": {
		`""`, `"a"`, `"ab"`, `"abc"`, `"b"`, `"B"`, `"é"`, `"\ud7ff"`, `"\ue000"`, `"\udbff\udfff"`, `"\udbff\udfffx"`, `"%"`, `"a_"`, `"'"`, `"\u0001"`, `"~"`,
		`"` + strings.Repeat("x", 199) + `"`, `"` + strings.Repeat("x", 200) + `a"`, `"` + strings.Repeat("x", 200) + `b"`, `"` + strings.Repeat("ü", 120) + `"`,
	},
	"amount": {`0`, `-1`, `1`, `1.5`, `-1.5`, `10`, `9`, `1e3`, `1e-3`, `9007199254740993`, `9007199254740992`, `-12`, `-120`},
	"email":  {`"0"`, `"04"`, `"05"`, `"1"`, keyOf(0), keyOf(1), keyOf(3), keyOf(6), keyOf(29), `"` + strings.Repeat("x", 205) + `"`, `"y"`},
	"paid":   {`true`, `false`},
	"since":  {`"2026-03-01T12:00:00Z"`, `"2026-03-01T13:00:00+01:00"`, `"2026-03-01T12:00:00.000001Z"`, `"0999-12-31T23:59:59Z"`},
}

// keyOf returns the key of a row. Every third one shares its first 205 bytes with others,
// and these keys are in the reverse order of the rows.
func keyOf(row int) string {
	if row%3 != 0 {
		return fmt.Sprintf(`"%02d"`, row)
	}
	return fmt.Sprintf(`"%s%02d"`, strings.Repeat("x", 205), 99-row)
}

// naive is a filter in the form in which naiveMatch evaluates it.
type naive struct {
	And    []naive         `json:"and,omitempty"`
	Or     []naive         `json:"or,omitempty"`
	Not    *naive          `json:"not,omitempty"`
	Column string          `json:"column,omitempty"`
	Op     string          `json:"op,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
}

func drawFilter(rt *rapid.T, depth int) naive {
	switch kind := rapid.IntRange(0, 7).Draw(rt, "kind"); {
	case kind < 2 && depth < 3:
		parts := []naive{}
		for range rapid.IntRange(1, 3).Draw(rt, "parts") {
			parts = append(parts, drawFilter(rt, depth+1))
		}
		if kind == 0 {
			return naive{Or: parts}
		}
		return naive{And: parts}
	case kind == 2 && depth < 3:
		child := drawFilter(rt, depth+1)
		return naive{Not: &child}
	}
	column := rapid.SampledFrom([]string{"email", "city", "amount", "paid", "since"}).Draw(rt, "column")
	ops := []string{"=", "=", "!=", "<", "<=", ">", ">=", "in", "is_null"}
	if column == "city" || column == "email" {
		ops = append(ops, "contains", "starts_with", "starts_with")
	}
	f := naive{Column: column, Op: rapid.SampledFrom(ops).Draw(rt, "op")}
	value := rapid.SampledFrom(filterColumns[column])
	switch f.Op {
	case "in":
		f.Value = json.RawMessage("[" + strings.Join(rapid.SliceOfN(value, 1, 3).Draw(rt, "values"), ",") + "]")
	case "is_null":
		f.Value = json.RawMessage(rapid.SampledFrom([]string{"true", "false"}).Draw(rt, "null"))
	case "contains", "starts_with":
		f.Value = json.RawMessage(rapid.SampledFrom(filterColumns[column][1:]).Draw(rt, "text"))
	default:
		f.Value = json.RawMessage(value.Draw(rt, "value"))
	}
	return f
}

// naiveCompare compares two values of a column, without the code under test.
func naiveCompare(column string, a, b json.RawMessage) int {
	switch column {
	case "amount":
		x, _ := new(big.Rat).SetString(string(a))
		y, _ := new(big.Rat).SetString(string(b))
		return x.Cmp(y)
	case "paid":
		return strings.Compare(string(a), string(b)) // false before true
	}
	var x, y string
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		panic("not a text")
	}
	if column == "since" {
		at, errA := time.Parse(time.RFC3339Nano, x)
		bt, errB := time.Parse(time.RFC3339Nano, y)
		if errA != nil || errB != nil {
			panic("not a time")
		}
		return at.Compare(bt)
	}
	return strings.Compare(x, y)
}

func naiveMatch(f naive, values table.Values) bool {
	switch {
	case f.And != nil:
		return !slices.ContainsFunc(f.And, func(c naive) bool { return !naiveMatch(c, values) })
	case f.Or != nil:
		return slices.ContainsFunc(f.Or, func(c naive) bool { return naiveMatch(c, values) })
	case f.Not != nil:
		return !naiveMatch(*f.Not, values)
	}
	value := values[f.Column]
	if isNull := string(value) == "null"; f.Op == "is_null" {
		return isNull == (string(f.Value) == "true")
	} else if isNull {
		return f.Op == "!="
	}
	if f.Op == "in" {
		var list []json.RawMessage
		_ = json.Unmarshal(f.Value, &list)
		return slices.ContainsFunc(list, func(v json.RawMessage) bool { return naiveCompare(f.Column, value, v) == 0 })
	}
	if f.Op == "contains" || f.Op == "starts_with" {
		var text, part string
		_, _ = json.Unmarshal(value, &text), json.Unmarshal(f.Value, &part)
		return f.Op == "contains" && strings.Contains(text, part) || f.Op == "starts_with" && strings.HasPrefix(text, part)
	}
	order := naiveCompare(f.Column, value, f.Value)
	return map[string]bool{"=": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[f.Op]
}

// testTableFilters compares what is found with an evaluation in memory, for random
// rows, filters and orders, with every combination of indexes and page by page.
func testTableFilters(t *testing.T, w *harness) {
	ws := w.workspace(t).ID
	columns := []string{"city", "amount", "paid", "since"}
	n := 0
	lane.Check(t, func(rt *rapid.T) {
		ctx := rt.Context()
		n++
		made := newTable(ws, fmt.Sprintf("filters-%d", n))
		for i, c := range made.Columns {
			made.Columns[i].Indexed = c.Type != table.JSON && rapid.Bool().Draw(rt, "index "+c.Name)
		}
		if _, err := w.insertTable(ctx, made, noLimit); err != nil {
			rt.Fatal(err)
		}
		scope := scopeOf(made)
		scope.Plan = auth.Enterprise
		var op table.Import
		var rows []table.Row
		for i := range rapid.IntRange(0, 30).Draw(rt, "rows") {
			values := table.Values{"email": json.RawMessage(keyOf(i))}
			for _, c := range columns {
				values[c] = json.RawMessage(rapid.SampledFrom(append([]string{"null"}, filterColumns[c]...)).Draw(rt, c))
			}
			id := fmt.Sprintf("row_%02d", i)
			op.Rows = append(op.Rows, table.ImportRow{RowID: id, Values: values})
			rows = append(rows, table.Row{ID: id, Values: values})
		}
		if _, err := w.Tables.ImportRows(ctx, scope, op); err != nil {
			rt.Fatal(err)
		}
		f := drawFilter(rt, 0)
		sort := rapid.SampledFrom([]string{"", "email", "-email", "city", "-city", "amount", "-amount", "paid", "-since"}).Draw(rt, "sort")
		text, _ := json.Marshal(f)
		var want []string
		for _, row := range naiveSorted(rows, sort) {
			if naiveMatch(f, row.Values) {
				want = append(want, row.ID)
			}
		}
		var got []string
		find := table.Find{Filter: text, Sort: sort, Limit: rapid.IntRange(1, 10).Draw(rt, "limit")}
		for more := true; more; more = find.After != "" {
			page, err := w.Tables.FindRows(ctx, scope, find)
			if err != nil {
				rt.Fatalf("%s: %v", text, err)
			}
			for _, row := range page.Rows {
				got = append(got, row.ID)
			}
			find.After = page.Next
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("%s sorted by %q:\ngot  %v\nwant %v", text, sort, got, want)
		}
	})
}

// naiveSorted sorts rows. Long texts that are not the key count with their first 199
// bytes.
func naiveSorted(rows []table.Row, sort string) []table.Row {
	sorted := slices.Clone(rows)
	if sort == "" {
		return sorted
	}
	column, desc := strings.CutPrefix(sort, "-")
	slices.SortStableFunc(sorted, func(a, b table.Row) int {
		order := strings.Compare(a.ID, b.ID)
		x, y := a.Values[column], b.Values[column]
		switch nullX, nullY := string(x) == "null", string(y) == "null"; {
		case nullX && nullY:
		case nullX:
			order = -1
		case nullY:
			order = 1
		default:
			if column != "email" {
				x, y = cut(x), cut(y)
			}
			if by := naiveCompare(column, x, y); by != 0 {
				order = by
			}
		}
		if desc {
			return -order
		}
		return order
	})
	return sorted
}

func cut(value json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(value, &text) != nil || len(text) < 200 {
		return value
	}
	end := 199
	for text[end]&0xC0 == 0x80 { // inside a character
		end--
	}
	short, _ := json.Marshal(text[:end])
	return short
}
