package state_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/state"
)

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "_", "0", "alert-2026-11-17", "ada+x@example.com", "a:b=c,d~e.f", strings.Repeat("x", 200)} {
		if err := state.CheckName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "-a", "a b", "a/b", "a%", "é", "a\n", strings.Repeat("x", 201)} {
		if state.CheckName(name) == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

func TestCompact(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{{` {"a" : 1.50}`, `{"a":1.50}`}, {`null`, `null`}, {`"é"`, `"é"`}} {
		if got, err := state.Compact(json.RawMessage(tc.in)); err != nil || string(got) != tc.want {
			t.Errorf("%s: got %s, %v", tc.in, got, err)
		}
	}
	for _, in := range []string{"", "{", `{"a":1,"a":2}`, `"` + strings.Repeat("x", state.MaxValue) + `"`} {
		if got, err := state.Compact(json.RawMessage(in)); err == nil {
			t.Errorf("%.20s: got %.20s", in, got)
		}
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if at, err := state.Expiry("/expires_in", "", now); at != nil || err != nil {
		t.Errorf("none: %v, %v", at, err)
	}
	if at, err := state.Expiry("/expires_in", "1d12h", now); err != nil || !at.Equal(now.Add(36*time.Hour)) {
		t.Errorf("1d12h: %v, %v", at, err)
	}
	for _, text := range []string{"0s", "-1h", "soon", "3651d"} {
		if at, err := state.Expiry("/expires_in", text, now); err == nil || !strings.Contains(err.Error(), "/expires_in") {
			t.Errorf("%s: %v, %v", text, at, err)
		}
	}
}

func TestSum(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ value, by, want string }{{"", "", "1"}, {"2", "", "3"}, {"0.1", "0.2", "0.3"}, {"-5", "5", "0"}} {
		var key *state.Key
		if tc.value != "" {
			key = &state.Key{Value: json.RawMessage(tc.value)}
		}
		var by json.RawMessage
		if tc.by != "" {
			by = json.RawMessage(tc.by)
		}
		if got, err := state.Sum(key, by); err != nil || string(got) != tc.want {
			t.Errorf("%s + %s: got %s, %v", tc.value, tc.by, got, err)
		}
	}
}

func TestKeptFiles(t *testing.T) {
	t.Parallel()
	const file = `{"$file": "file_1", "name": "a.pdf", "type": "application/pdf", "size": 3, "sha256": "00"}`
	key := state.Key{Value: json.RawMessage(`{"list": [` + file + `], "n": 1}`), Files: []string{"/list/0"}}
	for name, test := range map[string]struct {
		value string
		want  []string
	}{
		"another member":             {`{"list": [` + file + `], "n": 2}`, []string{"/list/0"}},
		"a changed name":             {`{"list": [` + strings.Replace(file, "a.pdf", "b.pdf", 1) + `]}`, nil},
		"another file":               {`{"list": [` + strings.Replace(file, "file_1", "file_2", 1) + `]}`, nil},
		"only the id":                {`{"list": [{"$file": "file_1"}]}`, nil},
		"another place":              {`{"other": ` + file + `}`, nil},
		"one more, that is not kept": {`{"list": [` + file + `, ` + file + `]}`, []string{"/list/0"}},
		"not an object":              {`"x"`, nil},
	} {
		got, err := state.KeptFiles(key, json.RawMessage(test.value))
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, test.want)
		}
	}
}
