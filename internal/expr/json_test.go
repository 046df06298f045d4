package expr_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/test/lane"
)

func TestFromJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		`null`: nil, `true`: true, `"a"`: "a", `42`: 42, `-7`: -7, `1.5`: 1.5, `1e3`: 1000.0, `1.0`: 1.0,
		`9007199254740993`:     9007199254740993,
		`9223372036854775807`:  9223372036854775807,
		`18446744073709551615`: json.Number("18446744073709551615"),
		`1e999`:                json.Number("1e999"),
		`[1, {"a":[2.5,3]}]`:   []any{1, map[string]any{"a": []any{2.5, 3}}},
	} {
		got, err := expr.FromJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, text := range []string{``, `{`, `1 2`, `[1]]`, `nope`, `{"a":1} x`} {
		if v, err := expr.FromJSON([]byte(text)); err == nil {
			t.Errorf("%s decoded to %v", text, v)
		}
	}
}

// A long id keeps all digits when it passes through, as a value and in text.
func TestNumbersPassThrough(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"42", "9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "0.1", "1e999"} {
		payload, err := expr.FromJSON([]byte(`{"id":` + id + `}`))
		if err != nil {
			t.Fatal(err)
		}
		env := &expr.Env{Trigger: expr.Trigger{Payload: payload}}
		for in, want := range map[string]string{
			`${{ trigger.payload.id }}`:                                  id,
			`${{ trigger.payload }}`:                                     `{"id":` + id + `}`,
			`n=${{ trigger.payload.id }}`:                                `"n=` + id + `"`,
			`${{ toJSON(trigger.payload) }}`:                             `"{\"id\":` + id + `}"`,
			`${{ fromJSON(toJSON(trigger.payload)).id }}`:                id,
			`${{ trigger.payload.id == trigger.payload["id"] }}`:         `true`,
			`${{ len(uniq([trigger.payload.id, trigger.payload.id])) }}`: `1`,
		} {
			v, err := expr.CompileValue(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := v.Eval(env, expr.Budget{})
			if err != nil {
				t.Errorf("%s of %s: %v", in, id, err)
				continue
			}
			if text := asJSON(t, got); text != want {
				t.Errorf("%s of %s = %s, want %s", in, id, text, want)
			}
		}
	}
}

// Callers may pass other Go types of numbers and containers.
func TestOtherGoTypes(t *testing.T) {
	t.Parallel()
	env := &expr.Env{Trigger: expr.Trigger{Payload: map[string]any{
		"n": []any{int64(1), int32(2), uint8(3), float32(0.5), uint64(1 << 63), json.Number("4"), json.Number("4.5")},
		"s": []string{"a"}, "m": map[string]string{"k": "v"}, "l": []map[string]any{{"x": int16(1)}},
	}}}
	for source, want := range map[string]string{
		`trigger.payload`:                 `{"l":[{"x":1}],"m":{"k":"v"},"n":[1,2,3,0.5,9223372036854775808,4,4.5],"s":["a"]}`,
		`sum(trigger.payload.n[:4])`:      `6.5`,
		`trigger.payload.n[5] + 1`:        `5`,
		`trigger.payload.s[0]`:            `"a"`,
		`trigger.payload.m.k`:             `"v"`,
		`trigger.payload.l[0].x == 1`:     `true`,
		`"a" in trigger.payload.s`:        `true`,
		`[1, 2] == trigger.payload.n[:2]`: `true`,
		`map(trigger.payload.l, .x)`:      `[1]`,
		`max(trigger.payload.n) > 1e18`:   `true`,
	} {
		p, err := expr.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Eval(env, expr.Budget{})
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if text := asJSON(t, got); text != want {
			t.Errorf("%s = %s, want %s", source, text, want)
		}
	}
}

// encoding/json decodes the result of toJSON to the same value.
func TestToJSONRoundTrip(t *testing.T) {
	t.Parallel()
	p, err := expr.Compile(`toJSON(trigger.payload)`)
	if err != nil {
		t.Fatal(err)
	}
	same, err := expr.Compile(`fromJSON(toJSON(trigger.payload)) == trigger.payload`)
	if err != nil {
		t.Fatal(err)
	}
	lane.Check(t, func(rt *rapid.T) {
		payload := anyJSON(3).Draw(rt, "payload")
		env := &expr.Env{Trigger: expr.Trigger{Payload: payload}}
		text, err := p.Eval(env, expr.Budget{})
		if err != nil {
			rt.Fatal(err)
		}
		var got any
		if err := json.Unmarshal([]byte(text.(string)), &got); err != nil {
			rt.Fatalf("%s: %v", text, err)
		}
		if a, b := asJSON(t, got), asJSON(t, payload); a != b {
			rt.Fatalf("%s became %s", b, a)
		}
		if ok, err := same.EvalBool(env, expr.Budget{}); err != nil || !ok {
			rt.Fatalf("%s is not itself: %v", text, err)
		}
	})
}

func anyJSON(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(), rapid.String().AsAny(), rapid.Int32().AsAny(),
		rapid.Float64Range(-1e9, 1e9).AsAny(),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	inner := anyJSON(depth - 1)
	return rapid.OneOf(append(leaves,
		rapid.SliceOfN(inner, 0, 4).AsAny(),
		rapid.MapOfN(rapid.String(), inner, 0, 4).AsAny(),
	)...)
}
