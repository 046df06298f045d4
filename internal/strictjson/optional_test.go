package strictjson_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/strictjson"
)

type patch struct {
	Name  strictjson.Optional[string]            `json:"name,omitzero"`
	Count strictjson.Optional[int]               `json:"count,omitzero"`
	Step  strictjson.Optional[step]              `json:"step,omitzero"`
	Input strictjson.Optional[map[string]any]    `json:"input,omitzero"`
	Free  strictjson.Optional[any]               `json:"free,omitzero"`
	Raw   strictjson.Optional[json.RawMessage]   `json:"raw,omitzero"`
	List  []strictjson.Optional[int]             `json:"list,omitzero"`
	Color strictjson.Optional[color]             `json:"color,omitzero"`
	Inner strictjson.Optional[innerPatch]        `json:"inner,omitzero"`
	Ptr   *strictjson.Optional[[]map[string]any] `json:"ptr,omitzero"`
}

type innerPatch struct {
	Value strictjson.Optional[any] `json:"value,omitzero"`
}

func value[T any](v T) strictjson.Optional[T] {
	return strictjson.Optional[T]{Set: true, Value: v}
}

func null[T any]() strictjson.Optional[T] {
	return strictjson.Optional[T]{Set: true, Null: true}
}

func TestOptional(t *testing.T) {
	t.Parallel()
	ptr := value([]map[string]any{{"n": 1}})
	tests := []struct {
		in   string
		want patch
	}{
		{`{}`, patch{}},
		{`{"name":null,"count":null,"step":null,"input":null}`, patch{
			Name: null[string](), Count: null[int](), Step: null[step](), Input: null[map[string]any](),
		}},
		{`{"name":"","count":0,"step":{}}`, patch{Name: value(""), Count: value(0), Step: value(step{})}},
		{`{"input":{"id":9007199254740993,"n":1.5},"free":[1]}`, patch{
			Input: value(map[string]any{"id": 9007199254740993, "n": 1.5}), Free: value[any]([]any{1}),
		}},
		{`{"raw":{"a":1.0},"list":[1,null]}`, patch{
			Raw: value(json.RawMessage(`{"a":1.0}`)), List: []strictjson.Optional[int]{value(1), null[int]()},
		}},
		{`{"inner":{"value":{"a":2}},"ptr":[{"n":1}]}`, patch{
			Inner: value(innerPatch{Value: value[any](map[string]any{"a": 2})}), Ptr: &ptr,
		}},
	}
	for _, test := range tests {
		var got patch
		if err := strictjson.Decode([]byte(test.in), &got); err != nil {
			t.Errorf("%s: %v", test.in, err)
			continue
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(color{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.in, diff)
		}
	}
}

func TestOptionalEncode(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(patch{Name: value("a"), Count: null[int](), Inner: value(innerPatch{})})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"name":"a","count":null,"inner":{}}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOptionalErrors(t *testing.T) {
	t.Parallel()
	const in = `{"name":1,"step":{"nope":1},"count":1.5,"color":"beige","inner":{"values":1},"list":["x"],"ptr":[null]}`
	got := problems(t, strictjson.Decode([]byte(in), new(patch))).Error()
	const want = `/name: must be a string, not a number; ` +
		`/step/nope: unknown field "nope"; ` +
		`/count: must be an integer, without a fraction or exponent; ` +
		`/color: beige is not a color; ` +
		`/inner/values: unknown field "values" (did you mean "value"?); ` +
		`/list/0: must be an integer, not a string; ` +
		`/ptr/0: must be an object, not null`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
