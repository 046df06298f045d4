package table_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/table"
)

// customers has a column of each type.
var customers = table.Table{
	ID: "tbl_1", Name: "customers", Key: "c1", LastColumn: 6, Columns: []table.Column{
		{ID: "c1", Name: "email", Type: table.Text, Required: true},
		{ID: "c2", Name: "city", Type: table.Text, Indexed: true},
		{ID: "c3", Name: "amount", Type: table.Number, Indexed: true},
		{ID: "c4", Name: "paid", Type: table.Boolean},
		{ID: "c5", Name: "since", Type: table.Time},
		{ID: "c6", Name: "extra", Type: table.JSON},
	},
}

func values(t testing.TB, text string) (v table.Values) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestValues(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"email": "a"}`:                                          `{"c1":"a"}`,
		`{"email": "a", "city": null}`:                            `{"c1":"a"}`,
		`{"email": "", "city": "<é>"}`:                            `{"c1":"","c2":"<é>"}`,
		`{"email": "a", "amount": 1.50}`:                          `{"c1":"a","c3":1.5}`,
		`{"email": "a", "amount": -0}`:                            `{"c1":"a","c3":0}`,
		`{"email": "a", "paid": false}`:                           `{"c1":"a","c4":false}`,
		`{"email": "a", "extra": [1, 2]}`:                         `{"c1":"a","c6":[1,2]}`,
		`{"email": "a", "amount": 12345678901234567890123}`:       `{"c1":"a","c3":1.2345678901234567890123e+22}`,
		`{"email": "a", "since": "2026-03-01T12:00:00-05:00"}`:    `{"c1":"a","c5":"2026-03-01T17:00:00.000000Z"}`,
		`{"email": "a", "since": "2026-03-01T12:00:00.9999999Z"}`: `{"c1":"a","c5":"2026-03-01T12:00:00.999999Z"}`,
	} {
		record, err := customers.New("row_1", values(t, in), nil, time.Time{})
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if data, err := table.Encode(record.Cells); err != nil || string(data) != want {
			t.Errorf("%s: got %s, %v, want %s", in, data, err, want)
		}
	}
}

func TestInvalidValues(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{}`:                                "/values/email: is required",
		`{"email": null}`:                   "/values/email: is required",
		`{"email": 5}`:                      "/values/email: must be a text in quotes, not 5",
		`{"email": "a\u0000"}`:              "/values/email: must not contain NUL",
		`{"email": "a", "amount": "5"}`:     `/values/amount: must be a number: "5" is not a number`,
		`{"email": "a", "amount": 1e500}`:   "/values/amount: must be a number: 1e500 is beyond",
		`{"email": "a", "paid": 1}`:         "/values/paid: must be true or false, not 1",
		`{"email": "a", "since": "monday"}`: "/values/since: must be a time such as",
		`{"email": "a", "since": "9999-12-31T23:59:59-01:00"}`: "/values/since: must be a time such as",
		`{"email": "a", "extra": {"a": 1, "a": 2}}`:            "/values/extra: must be JSON",
		`{"email": "a", "ammount": 1}`:                         `/values/ammount: the table customers has no column "ammount" (did you mean "amount"?)`,
		`{"email": "` + strings.Repeat("x", 255) + `"}`:        "/values/email: has more than 254 bytes",
	} {
		_, err := customers.New("row_1", values(t, in), nil, time.Time{})
		f, ok := fault.As(err)
		if !ok || f.Code != fault.InvalidRequest || !strings.Contains(f.Message, want) {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
	_, err := customers.New("row_1", values(t, `{"amount": "x", "paid": 3}`), nil, time.Time{})
	if f, ok := fault.As(err); !ok || len(f.Details) != 3 {
		t.Errorf("several problems: %v", err)
	}
}
