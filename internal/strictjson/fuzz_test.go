package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/test/lane"
)

// fuzzDocument is a type whose values can be compared with those that
// encoding/json decodes.
type fuzzDocument struct {
	Name  string                     `json:"name"`
	Count *int32                     `json:"count"`
	Ratio float32                    `json:"ratio"`
	Steps []fuzzDocument             `json:"steps"`
	Map   map[string]map[string]bool `json:"map"`
	Raw   json.RawMessage            `json:"raw"`
	Blob  []byte                     `json:"blob"`
	Opt   strictjson.Optional[uint8] `json:"opt"`
	Color color                      `json:"color"`
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[1,2.5,-0,1e400,9007199254740993]`, `{"a":{"b":[null,true,"x\u00e4\ud83d\ude00"]}}`,
		`{"name":"a","count":1,"ratio":0.5,"steps":[{"name":"b","map":{"x":{"y":true}}}],"raw":[1, 2]}`,
		`{"name":1,"Name":2,"opt":null,"blob":"aGk=","color":"beige"}`, `{"a":1,"a":2}`, `{"\u0061":1,"a":2}`,
		`["\ud800"]`, "[\"\xff\"]", `["\u0000"]`, `[1,]`, `// x`, `{"opt":256}`, string(benchInput()),
		object(20), nest("[", "1", "]", 65), "\uFEFF{}", `1e-999999999`, `{"color":{"a":1}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzAny(t, data)
		fuzzStruct(t, data)
	})
}

// fuzzAny checks that encoding/json decodes accepted input to the same value.
func fuzzAny(t *testing.T, data []byte) {
	got, err := strictjson.DecodeAny(data)
	checked := strictjson.Check(data)
	if diff := cmp.Diff(problems(t, err), problems(t, checked)); diff != "" {
		t.Fatalf("Check and DecodeAny disagree about %q:\n%s", data, diff)
	}
	if err != nil {
		var errs strictjson.Errors
		if errors.As(err, &errs) && errs.Kind() == strictjson.Shape && len(errs) < 20 {
			return // a limit may have ended the scan early
		}
		if json.Valid(data) && !hasDuplicate(data) && !lossy(data) {
			t.Fatalf("%q is valid but was rejected: %v", data, err)
		}
		return
	}
	if !json.Valid(data) || hasDuplicate(data) {
		t.Fatalf("accepted %q", data)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var want any
	if err := d.Decode(&want); err != nil {
		t.Fatalf("encoding/json rejects %q: %v", data, err)
	}
	if !same(got, want) {
		t.Fatalf("%q: got %#v, want %#v", data, got, want)
	}
}

func fuzzStruct(t *testing.T, data []byte) {
	var got, want fuzzDocument
	err := strictjson.Decode(data, &got)
	if err != nil {
		for _, e := range problems(t, err) {
			if strings.Contains(e.Message, "json: ") || e.Line < 1 || e.Column < 1 {
				t.Fatalf("%q: error %+v", data, e)
			}
		}
		return
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&want); err != nil {
		t.Fatalf("encoding/json rejects %q: %v", data, err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(color{})); diff != "" {
		t.Fatalf("%q (-want +got):\n%s", data, diff)
	}
}

// lossy reports whether encoding/json changes text: it replaces invalid Unicode.
func lossy(data []byte) bool {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return true
	}
	return strings.Contains(fmt.Sprint(v), "\uFFFD") || !bytes.Equal(data, bytes.ToValidUTF8(data, nil))
}

// hasDuplicate reports whether an object in valid JSON has duplicate keys.
func hasDuplicate(data []byte) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	type level struct {
		seen map[string]bool // nil in an array
		key  bool            // a key is next
	}
	stack := []level{{}}
	for {
		token, err := d.Token()
		if err != nil {
			return !errors.Is(err, io.EOF)
		}
		top := &stack[len(stack)-1]
		if name, ok := token.(string); ok && top.key {
			if top.seen[name] {
				return true
			}
			top.seen[name], top.key = true, false
			continue
		}
		top.key = top.seen != nil
		switch token {
		case json.Delim('{'):
			stack = append(stack, level{seen: map[string]bool{}, key: true})
		case json.Delim('['):
			stack = append(stack, level{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		}
	}
}

// same compares a decoded value with one that has json.Number for numbers.
func same(got, want any) bool {
	switch want := want.(type) {
	case json.Number:
		return sameNumber(got, want)
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return false
		}
		for i := range want {
			if !same(got[i], want[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok || len(got) != len(want) {
			return false
		}
		for k := range want {
			if v, ok := got[k]; !ok || !same(v, want[k]) {
				return false
			}
		}
		return true
	}
	return got == want
}

func sameNumber(got any, want json.Number) bool {
	f, err := want.Float64()
	if err != nil {
		return false
	}
	n, ok := got.(int)
	if !ok {
		return got == f && (f != math.Trunc(f) || math.Abs(f) >= 1<<63)
	}
	if float64(n) != f {
		return false
	}
	// A float64 may be inexact only if the number is not an integer.
	if math.Abs(f) < 1<<53 || math.Abs(f) > 1<<63 {
		return true
	}
	exact, ok := new(big.Rat).SetString(want.String())
	return ok && (!exact.IsInt() || !exact.Num().IsInt64() || exact.Num().Int64() == int64(n))
}

// TestRoundTrip checks that random values keep their value and type across
// encoding and decoding.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		want := anyValue(4).Draw(t, "value")
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "indent") {
			var b bytes.Buffer
			if err := json.Indent(&b, data, "", "\t"); err != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		}
		got, err := strictjson.DecodeAny(data)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", data, diff)
		}
	})
}

func anyValue(depth int) *rapid.Generator[any] {
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.ToValidUTF8(strings.ReplaceAll(rapid.StringN(0, 40, 200).Draw(t, "text"), "\x00", ""), "")
	})
	kinds := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		text.AsAny(),
		rapid.Int().AsAny(),
		rapid.Float64().Filter(func(f float64) bool { return f != math.Trunc(f) || math.Abs(f) >= 1<<63 }).AsAny(),
	}
	if depth > 0 {
		inner := rapid.Deferred(func() *rapid.Generator[any] { return anyValue(depth - 1) })
		kinds = append(kinds,
			rapid.SliceOfN(inner, 0, 5).AsAny(),
			rapid.MapOfN(text, inner, 0, 30).AsAny())
	}
	return rapid.OneOf(kinds...)
}
