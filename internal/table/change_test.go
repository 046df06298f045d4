package table_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/table"
)

func patch(name string, p *table.ColumnPatch) table.Patch {
	return table.Patch{Columns: map[string]*table.ColumnPatch{name: p}}
}

func TestChangesThatAreRejected(t *testing.T) {
	t.Parallel()
	full := customers
	full.Rows = 1
	huge := customers
	huge.Rows = table.MaxRewrite + 1
	for want, tc := range map[string]struct {
		table table.Table
		patch table.Patch
	}{
		"/name: must start with a letter":                         {full, table.Patch{Name: new("A")}},
		"/name: must not be the id of a table":                    {full, table.Patch{Name: new("tbl_01m7facgqmf46bs8r42wfv2z13")}},
		"/columns/email: is the key and cannot be dropped":        {full, patch("email", nil)},
		"/columns/email/required: must be true":                   {full, patch("email", &table.ColumnPatch{Required: new(false)})},
		"/columns/email/type: is the key":                         {full, patch("email", &table.ColumnPatch{Type: new(table.Number)})},
		"/columns/email/type: the key must be":                    {customers, patch("email", &table.ColumnPatch{Type: new(table.JSON)})},
		`/columns/town: the table customers has no column "town"`: {full, patch("town", nil)},
		"/columns/town/type: is required to add":                  {full, patch("town", &table.ColumnPatch{})},
		"/columns/town/type: must be one of text":                 {full, patch("town", &table.ColumnPatch{Type: new(table.Type("string"))})},
		"/columns/town/required: the table has rows":              {full, patch("town", &table.ColumnPatch{Type: new(table.Text), Required: new(true)})},
		"/columns/extra/indexed: a column of type json":           {full, patch("extra", &table.ColumnPatch{Indexed: new(true)})},
		`/columns: there would be two columns named "paid"`:       {full, patch("city", &table.ColumnPatch{Name: new("paid")})},
		"/columns/city/name: must start with a letter or _":       {full, patch("city", &table.ColumnPatch{Name: new("ci ty")})},
		"/columns: the table has more than 5000 rows for each new index, or more than 4194304 bytes: export it and": {huge, patch("paid", &table.ColumnPatch{Indexed: new(true)})},
	} {
		if _, err := tc.table.Change(tc.patch); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := huge.Change(patch("paid", &table.ColumnPatch{Name: new("settled")})); err != nil {
		t.Errorf("renaming a column of a large table: %v", err)
	}
}

func TestConversions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		column string
		value  string
		to     table.Type
		want   string // empty: it fails
	}{
		{"city", `"1.50"`, table.Number, "1.5"},
		{"city", `"x"`, table.Number, ""},
		{"city", `"true"`, table.Boolean, "true"},
		{"city", `"2026-03-01T12:00:00Z"`, table.Time, `"2026-03-01T12:00:00.000000Z"`},
		{"city", `"x"`, table.JSON, `"x"`},
		{"amount", `1.5`, table.Text, `"1.5"`},
		{"amount", `1`, table.Boolean, ""},
		{"paid", `true`, table.Text, `"true"`},
		{"since", `"2026-03-01T12:00:00Z"`, table.Text, `"2026-03-01T12:00:00.000000Z"`},
		{"extra", `{"a": 1}`, table.Text, `"{\"a\":1}"`},
		{"extra", `5`, table.Number, "5"},
		{"extra", `[]`, table.Number, ""},
	} {
		change, err := customers.Change(patch(tc.column, &table.ColumnPatch{Type: new(tc.to), Indexed: new(false)}))
		if err != nil || !change.Rewrite {
			t.Fatal(err)
		}
		record, err := customers.New("row_1", values(t, `{"email": "a", "`+tc.column+`": `+tc.value+`}`), nil, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		converted, err := change.Convert(record)
		if tc.want == "" {
			if err == nil || !strings.Contains(err.Error(), "/columns/"+tc.column+": the value of the row row_1 cannot be kept") {
				t.Errorf("%s %s to %s: %v", tc.column, tc.value, tc.to, err)
			}
			continue
		}
		if got := string(change.Table.Row(converted).Values[tc.column]); err != nil || got != tc.want {
			t.Errorf("%s %s to %s: got %s, %v", tc.column, tc.value, tc.to, got, err)
		}
	}
}

func TestChangeOfIndexes(t *testing.T) {
	t.Parallel()
	change, err := customers.Change(table.Patch{Columns: map[string]*table.ColumnPatch{"city": nil, "amount": {Indexed: new(false)}, "paid": {Indexed: new(true)}, "new": {Type: new(table.Text), Indexed: new(true)}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"c4", "c7"}, {"c3", "c2"}}, [][]string{change.Reindex, change.Unindex}); diff != "" || change.Rewrite {
		t.Error(diff, change.Rewrite)
	}
}
