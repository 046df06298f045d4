package table_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/table"
)

func TestInvalidFilters(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`[]`:                                  "/filter",
		`{}`:                                  "/filter: must have either and, or, not, or a column",
		`{"and": []}`:                         "/filter/and: must have at least one condition",
		`{"and": [{}], "or": [{}]}`:           "/filter: must have either",
		`{"xor": []}`:                         "/filter/xor",
		`{"not": {"and": [{"column": "x"}]}}`: "/filter/not/and/0/op: is required",
		`{"op": "="}`:                         "/filter/column: is required",
		`{"column": "town", "op": "=", "value": 1}`:                                                              `/filter/column: the table customers has no column "town"`,
		`{"column": "city", "op": "==", "value": "x"}`:                                                           "/filter/op: must be one of =, !=",
		`{"column": "city", "op": "="}`:                                                                          "/filter/value: is required",
		`{"column": "city", "op": "=", "value": null}`:                                                           "/filter/value: must not be null: use the op is_null",
		`{"column": "city", "op": "=", "value": 5}`:                                                              "/filter/value: must be a text in quotes",
		`{"column": "city", "op": "in", "value": "x"}`:                                                           "/filter/value: must be a list of 1 to 100 values",
		`{"column": "city", "op": "in", "value": ["x", 1]}`:                                                      "/filter/value/1: must be a text in quotes",
		`{"column": "amount", "op": "contains", "value": "5"}`:                                                   "/filter/op: amount is of type number: contains is for text",
		`{"column": "city", "op": "starts_with", "value": ""}`:                                                   "/filter/value: must be a text that is not empty",
		`{"column": "extra", "op": "=", "value": {}}`:                                                            "/filter/op: extra is of type json",
		`{"column": "city", "op": "is_null", "value": "yes"}`:                                                    "/filter/value: must be true",
		`{"column": "city", "op": "=", "value": "x", "and": []}`:                                                 "/filter: must have either",
		strings.Repeat(`{"not":`, 9) + `{"column": "paid", "op": "is_null"}` + strings.Repeat("}", 9):            "more than 8 levels deep",
		`{"or": [` + strings.TrimSuffix(strings.Repeat(`{"column": "paid", "op": "is_null"},`, 101), ",") + `]}`: "/filter/or/100: the filter has more than 100 conditions",
		`{"column": "city", "op": "=", "value": "` + strings.Repeat("x", 16<<10) + `"}`:                          "/filter: must have at most 16384 bytes",
	} {
		_, err := customers.ParseFilter("/filter", json.RawMessage(in))
		if f, ok := fault.As(err); !ok || f.Code != fault.InvalidRequest || !strings.Contains(f.Message, want) {
			t.Errorf("%.80s: got %v, want %s", in, err, want)
		}
	}
}

// TestPlans checks which access is chosen.
func TestPlans(t *testing.T) {
	t.Parallel()
	city, amount := `{"column": "city", "op": "=", "value": "x"}`, `{"column": "amount", "op": ">", "value": 1}`
	key := `{"column": "email", "op": "=", "value": "a"}`
	for _, tc := range []struct {
		filter, sort, key, column string
		sorted                    bool
	}{
		{"", "", "", "", true},
		{"", "city", "", "c2", true},
		{"", "-paid", "", "", false},
		{city, "", "", "c2", false},
		{city, "city", "", "c2", true},
		{amount, "city", "", "c3", false},
		{`{"and": [` + amount + `, ` + city + `]}`, "", "", "c2", false},
		{`{"and": [` + amount + `, {"and": [` + key + `]}]}`, "city", "1a", "", true},
		{"", "-email", "", "c1", true},
		{`{"column": "email", "op": "starts_with", "value": "a"}`, "email", "", "c1", true},
		{`{"and": [` + amount + `, {"column": "email", "op": "in", "value": ["a", "b"]}]}`, "city", "", "c1", false},
		{`{"or": [` + key + `]}`, "", "", "", true},
		{`{"not": ` + key + `}`, "", "", "", true},
		{`{"column": "city", "op": "!=", "value": "x"}`, "", "", "", true},
		{`{"column": "city", "op": "contains", "value": "x"}`, "", "", "", true},
		{`{"column": "paid", "op": "=", "value": true}`, "", "", "", true},
	} {
		var filter json.RawMessage
		if tc.filter != "" {
			filter = json.RawMessage(tc.filter)
		}
		p, err := customers.Plan(filter, tc.sort)
		if err != nil || p.Key != tc.key || p.Column != tc.column || p.ByKey != (p.Column == customers.Key) || p.Sorted != tc.sorted {
			t.Errorf("%s by %q: got key %q, column %q, sorted %t, %v", tc.filter, tc.sort, p.Key, p.Column, p.Sorted, err)
		}
	}
	for sort, want := range map[string]string{"town": "no column", "extra": "has no order", "-": "no column"} {
		if _, err := customers.Plan(nil, sort); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("sort by %s: %v", sort, err)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	for _, text := range []string{
		`{"column": "city", "op": "starts_with", "value": "é"}`, `{"and": [{"column": "amount", "op": "in", "value": [1, 2.5]}, {"not": {"column": "paid", "op": "is_null"}}]}`,
		`{"or": [{"column": "since", "op": "<=", "value": "2026-03-01T12:00:00Z"}]}`, `{"and": [{}]}`, `null`, `{"column": "city", "op": "=", "value": "\ud800"}`,
	} {
		f.Add(text, "a", "1")
	}
	f.Fuzz(func(t *testing.T, text, city, amount string) {
		p, err := customers.Plan(json.RawMessage(text), "city")
		if err != nil {
			if _, ok := fault.As(err); !ok {
				t.Fatalf("%s: %v is not a fault", text, err)
			}
			return
		}
		quoted, _ := json.Marshal(city)
		record, err := customers.New("row_1", table.Values{"email": quoted, "city": quoted, "amount": json.RawMessage(amount)}, nil, time.Time{})
		if err != nil || !p.Filter.Match(record) {
			return
		}
		// What matches lies where the plan looks for it.
		switch {
		case p.Key != "" && customers.UniqueKey(record.Cells) != p.Key:
			t.Fatalf("%s: the key %s does not match", text, p.Key)
		case p.Column != "":
			for _, c := range customers.Columns {
				at := c.SortKey(record)
				if p.ByKey {
					at = customers.UniqueKey(record.Cells)
				}
				if c.ID == p.Column && (at < p.Low || at >= p.High) {
					t.Fatalf("%s: %q is not between %q and %q", text, at, p.Low, p.High)
				}
			}
		}
	})
}
