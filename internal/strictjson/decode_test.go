package strictjson_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stepmill/stepmill/internal/strictjson"
)

func TestDecodeEverything(t *testing.T) {
	t.Parallel()
	const in = `{
		"state": "\u0061ctive", "workflow_id": "wf", "enabled": true, "count": -9223372036854775808,
		"small": 127, "port": 65535, "big": 18446744073709551615, "ratio": 1e300, "single": 1.5,
		"number": 1.50, "at": "2026-01-02T03:04:05.5+02:00", "until": null, "blob": "aGk=",
		"addr": "::1", "color": "red", "shape": {"sides": 3, "points": [1]},
		"steps": [{"id": "a", "needs": ["b"]}, {}], "by_name": {"x": {"id": "y"}},
		"raw":  { "a" :[1, 1e3] } , "free": [1, 2.5, {"n": 9007199254740993}],
		"input": {"id": 9223372036854775807, "list": [1.0, null]},
		"patch": {"id": "p"}, "title": null
	}`
	wf := "wf"
	want := document{
		State: "active", WorkflowID: &wf, Enabled: true, Count: -9223372036854775808,
		Small: 127, Port: 65535, Big: 18446744073709551615, Ratio: 1e300, Single: 1.5,
		Number: "1.50", At: time.Date(2026, 1, 2, 1, 4, 5, 5e8, time.UTC), Blob: []byte("hi"),
		Addr: netip.MustParseAddr("::1"), Color: color{"red"}, Shape: shape{3, []int{1}},
		Steps:  []step{{ID: "a", Needs: []string{"b"}}, {}},
		ByName: map[string]step{"x": {ID: "y"}},
		Raw:    json.RawMessage(`{ "a" :[1, 1e3] }`),
		Free:   []any{1, 2.5, map[string]any{"n": 9007199254740993}},
		Input:  map[string]any{"id": 9223372036854775807, "list": []any{1, nil}},
		Patch:  strictjson.Optional[step]{Set: true, Value: step{ID: "p"}},
		Title:  strictjson.Optional[string]{Set: true, Null: true},
	}
	var got document
	if err := strictjson.Decode([]byte(in), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}), cmp.AllowUnexported(color{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeKeepsDefaults(t *testing.T) {
	t.Parallel()
	got := step{ID: "default", Needs: []string{"x"}}
	if err := strictjson.Decode([]byte(`{"needs":[]}`), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(step{ID: "default", Needs: []string{}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeTargets(t *testing.T) {
	t.Parallel()
	var (
		pointer  *step
		anything any
		list     []any
		table    map[string]any
		named    map[step2]any
		deep     map[string][]map[string]*any
		number   int
	)
	var one any = 1
	tests := []struct {
		in        string
		dst, want any
	}{
		{`{"id":"a"}`, &pointer, new(step)},
		{`null`, &pointer, (*step)(nil)},
		{`null`, &anything, nil},
		{`[1,"a",null,true]`, &list, []any{1, "a", nil, true}},
		{`{"a":1,"b":null,"c":{"d":[2]}}`, &table, map[string]any{"a": 1, "b": nil, "c": map[string]any{"d": []any{2}}}},
		{`{"a":1,"b":null}`, &named, map[step2]any{"a": 1, "b": nil}},
		{`{"a":[{"b":1,"c":null}]}`, &deep, map[string][]map[string]*any{"a": {{"b": &one, "c": nil}}}},
		{` 12 `, &number, 12},
	}
	tests[0].want.(*step).ID = "a"
	for _, test := range tests {
		if err := strictjson.Decode([]byte(test.in), test.dst); err != nil {
			t.Errorf("%s: %v", test.in, err)
			continue
		}
		if diff := cmp.Diff(test.want, deref(test.dst)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.in, diff)
		}
	}
}

type step2 string

func deref(dst any) any {
	switch v := dst.(type) {
	case **step:
		return *v
	case *any:
		return *v
	case *[]any:
		return *v
	case *map[string]any:
		return *v
	case *map[step2]any:
		return *v
	case *map[string][]map[string]*any:
		return *v
	case *int:
		return *v
	}
	return dst
}

func TestNumbersIntoAny(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want any
	}{
		{"0", 0}, {"-0", 0}, {"-0.0", 0}, {"1", 1}, {"1.0", 1}, {"1e0", 1}, {"10e-1", 1}, {"1.5", 1.5},
		{"999999999999999", 999999999999999},
		{"9007199254740993", 9007199254740993},
		{"-9007199254740993", -9007199254740993},
		{"9007199254740993.0", 9007199254740993},
		{"900719925474099.3e1", 9007199254740993},
		{"9007199254740993000e-3", 9007199254740993},
		{"9223372036854775807", 9223372036854775807},
		{"9223372036854775807.0", 9223372036854775807},
		{"9223372036854775808", 9223372036854775808.0},
		{"-9223372036854775808", -9223372036854775808},
		{"-9223372036854775809", -9223372036854775808},
		{"123456789012345e3", 123456789012345000},
		{"1e18", 1000000000000000000},
		{"1e19", 1e19}, {"1e300", 1e300}, {"0.1", 0.1}, {"1e-300", 1e-300},
	}
	for _, test := range tests {
		got, err := strictjson.DecodeAny([]byte(test.in))
		if err != nil || got != test.want {
			t.Errorf("DecodeAny(%s) = %v (%T), %v; want %v (%T)", test.in, got, got, err, test.want, test.want)
		}
		// A value must keep its type across encoding and decoding.
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := strictjson.DecodeAny(again); err != nil || second != got {
			t.Errorf("%s became %v (%T), was %v (%T)", test.in, second, second, got, got)
		}
	}
}

func TestUnsupportedTargets(t *testing.T) {
	t.Parallel()
	type option struct {
		N int `json:"n,string"`
	}
	type quoted struct {
		N int `json:"a'b"` //nolint:staticcheck // a name that is not allowed, on purpose
	}
	type hidden struct{ A int }
	type pointer struct{ *hidden }
	type named struct {
		hidden `json:"h"`
	}
	for _, dst := range []any{
		nil, document{}, (*document)(nil), new(chan int), new([2]int), new(map[int]string),
		new(map[netip.Addr]string), new(error), new([]func()), new(struct{ C complex64 }),
		new(option), new(quoted), new(pointer), new(named), new(strictjson.Optional[chan int]),
	} {
		err := strictjson.Decode([]byte(`{}`), dst)
		if _, ok := errors.AsType[strictjson.Errors](err); ok || err == nil {
			t.Errorf("%T: got %v", dst, err)
		}
	}
}

func TestConcurrentFirstUse(t *testing.T) {
	t.Parallel()
	type fresh struct {
		Children []fresh        `json:"children"`
		Parent   *fresh         `json:"parent"`
		Data     map[string]any `json:"data"`
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			var got fresh
			err := strictjson.Decode([]byte(`{"children":[{"data":{"a":1}}],"parent":{"parent":null}}`), &got)
			if err != nil || got.Children[0].Data["a"] != 1 {
				t.Errorf("got %+v, %v", got, err)
			}
			err = strictjson.Decode([]byte(`{"children":[{"children":[{"child":1}]}]}`), &got)
			if errs := problems(t, err); errs[0].Pointer != "/children/0/children/0/child" {
				t.Errorf("got %v", errs)
			}
		})
	}
	group.Wait()
}
