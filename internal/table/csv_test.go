package table_test

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/table"
)

func TestParseCSV(t *testing.T) {
	t.Parallel()
	op, err := customers.ParseCSV([]byte("\uFEFFemail,amount,city,extra\r\nada,1.50,\"Zürich\n2\",\"{\"\"a\"\":1}\"\r\nbob,,,\r\n"), clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	var lines []int
	var got []table.Values
	for _, row := range op.Rows {
		lines, got = append(lines, row.Line), append(got, row.Values)
	}
	want := []table.Values{
		values(t, `{"email": "ada", "amount": 1.5, "city": "Zürich\n2", "extra": {"a":1}}`),
		values(t, `{"email": "bob", "amount": null, "city": null, "extra": null}`),
	}
	if diff := cmp.Diff(want, got, cmp.Transformer("text", func(v table.Values) map[string]string {
		out := map[string]string{}
		for name, raw := range v {
			out[name] = string(bytes.ReplaceAll(raw, []byte(" "), nil))
		}
		return out
	})); diff != "" || lines[0] != 2 || lines[1] != 4 {
		t.Errorf("lines %v:\n%s", lines, diff)
	}
}

func TestSeparatorsOfCSV(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"email,city\na,\"b;,|\tc\"\n", "\uFEFFemail;city\r\na;\"b;,|\tc\"\r\n", "email\tcity\na\t\"b;,|\tc\"\n", "email|city\na|\"b;,|\tc\"\n"} {
		op, err := customers.ParseCSV([]byte(in), clock.Now())
		if err != nil || len(op.Rows) != 1 || string(op.Rows[0].Values["email"]) != `"a"` || string(op.Rows[0].Values["city"]) != `"b;,|\tc"` {
			t.Errorf("%q: %+v, %v", in, op.Rows, err)
		}
	}
}

func TestInvalidCSV(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                   "line 1: the file is empty",
		"email,town\n":                       `line 1, column town: the table customers has no column "town"`,
		"\x1f\n":                             `line 1, column "\x1f": the table customers has no column "\x1f"`,
		"email,email\n":                      "line 1, column email: the column is named twice",
		"city\nx\n":                          "line 1, column email: the column is required",
		"email,amount\na,1\nb,x\n":           "line 3, column amount: must be a number: x is not a number",
		"email;amount\na;1,5\n":              "line 2, column amount: must be a number: 1,5 is not a number",
		"email,amount\na\n":                  "line 2: the line has another number of fields",
		"email\n\"a\n":                       "line 2: the quotes of a field do not match",
		"email,city\na\"b,c\n":               "line 2: a quote inside a field",
		"email\na\nb\na\n":                   "line 4, column email: line 2 has the same key",
		"email,paid\na,yes\n":                "line 2, column paid: must be true or false, not yes",
		"email,extra\na,{\n":                 "line 2, column extra: must be JSON",
		"email\n" + strings.Repeat("x\n", 3): "line 3, column email: line 2 has the same key",
	} {
		_, err := customers.ParseCSV([]byte(in), clock.Now())
		f, ok := fault.As(err)
		if !ok || f.Code != fault.InvalidRequest || !strings.Contains(f.Message, want) || len(f.Details) != 1 || f.Details[0].Line == 0 || f.Details[0].Column == 0 {
			t.Errorf("%q: got %+v, want %s", in, err, want)
		}
	}
}

func FuzzParseCSV(f *testing.F) {
	for _, text := range []string{"email,amount\na,1\n", "email\n\"a\"\"b\"\n", "email,since\na,2026-03-01T12:00:00Z\r\n", "\uFEFFemail\n", "email,extra\na,[1]\n", "\"", "a\x00,b\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		op, err := customers.ParseCSV(data, time.UnixMilli(1_800_000_000_000))
		if err != nil {
			if _, ok := fault.As(err); !ok {
				t.Fatalf("%v is not a fault", err)
			}
			return
		}
		// What was read is written and read again without a change.
		var out bytes.Buffer
		w := csv.NewWriter(&out)
		_ = w.Write(customers.CSVHeader())
		for _, row := range op.Rows {
			record, err := customers.New(row.RowID, row.Values, nil, time.Time{})
			if err != nil {
				t.Fatalf("a row that was read is invalid: %v", err)
			}
			_ = w.Write(customers.CSVFields(customers.Row(record)))
		}
		w.Flush()
		again, err := customers.ParseCSV(out.Bytes(), time.UnixMilli(1_800_000_000_000))
		if err != nil || len(again.Rows) != len(op.Rows) {
			t.Fatalf("%q was written as %q: %v", data, out.Bytes(), err)
		}
	})
}
