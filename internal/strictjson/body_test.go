package strictjson_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/strictjson"
)

type promoted struct {
	Steps *[]step `json:"steps"`
}

type body struct {
	promoted
	Name        *string                      `json:"name"`
	Description *string                      `json:"description" null:"ok"`
	Note        strictjson.Optional[string]  `json:"note"`
	Deep        strictjson.Optional[*string] `json:"deep"`
	Raw         json.RawMessage              `json:"raw"`
	Inner       *struct {
		Name *string `json:"name"`
	} `json:"inner"`
	List  []*string          `json:"list"`
	Named map[string]*string `json:"named"`
}

func TestDecodeBodyRejectsNull(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   string
		want []string
	}{
		{`{}`, nil},
		{`{"name": "a", "steps": []}`, nil},
		{`{"description": null, "note": null, "deep": null, "raw": null}`, nil},
		{`{"inner": {"name": null}, "list": [null], "named": {"name": null}}`, nil},
		{`{"name": null}`, []string{"1:10 /name: must not be null"}},
		{`{"steps": null}`, []string{"1:11 /steps: must not be null"}},
		{`{"n\u0061me": null}`, []string{"1:15 /name: must not be null"}},
		{`{"inner": null, "nmae": null, "steps":
  null}`, []string{
			"1:11 /inner: must not be null", `1:17 /nmae: unknown field "nmae" (did you mean "name"?)`, "2:3 /steps: must not be null",
		}},
	} {
		var dst body
		var got []string
		for _, e := range problems(t, strictjson.DecodeBody([]byte(tc.in), &dst)) {
			got = append(got, fmt.Sprintf("%d:%d %s: %s", e.Line, e.Column, e.Pointer, e.Message))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.in, diff)
		}
	}
}

// Decode leaves a pointer nil for null, as encoding/json does.
func TestDecodeAcceptsNullForPointers(t *testing.T) {
	t.Parallel()
	var dst body
	if err := strictjson.Decode([]byte(`{"name": null, "steps": null, "inner": null}`), &dst); err != nil {
		t.Fatal(err)
	}
	if dst.Name != nil || dst.Steps != nil || dst.Inner != nil {
		t.Errorf("got %+v", dst)
	}
}

// Error.Key is set only for errors about a key.
func TestErrorsDistinguishKeysFromValues(t *testing.T) {
	t.Parallel()
	var dst body
	got := map[string]bool{}
	for _, e := range problems(t, strictjson.Decode([]byte(`{"nmae": 1, "name": 2, "steps": [{"di": 3, "id": 4}]}`), &dst)) {
		got[e.Pointer] = e.Key
	}
	want := map[string]bool{"/nmae": true, "/name": false, "/steps/0/di": true, "/steps/0/id": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
