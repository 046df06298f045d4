package expr_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/expr"
)

// small keeps each evaluation short, so that the fuzzer tries many inputs.
var small = expr.Budget{Steps: 20_000, Memory: 1 << 20, Result: 1 << 16}

func FuzzCompile(f *testing.F) {
	for _, fn := range expr.Functions() {
		for _, e := range fn.Examples {
			f.Add(e.Source)
		}
	}
	for _, s := range []string{
		`steps.a.output.x ?? trigger.payload[0]`, `let a = 1; a ? [a] : {b: a}`, `1 < (1 < 2) < 3`, `x not in [1..3]`,
		"`a``b` + '\\u{1F600}'", `"a" matches "(?i)[a-z]{2,3}"`, `if true { 1 } else if false { 2 } else { 3 }`,
		`map(1..3, {a: #, b: map(1..#, {let c = #index; c})})`, `1_0.5e-3 ** -2 % 3`, `::len("a")`, `#acc`, `a?.b?.[0]`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := expr.Compile(source)
		if err != nil {
			checkError(t, err, source)
			return
		}
		v, err := p.Eval(sampleEnv(), small)
		if err != nil {
			checkError(t, err, source)
			return
		}
		checkPlain(t, v)
		again, err := p.Eval(sampleEnv(), small)
		if err != nil || asJSON(t, again) != asJSON(t, v) {
			t.Fatalf("%q is not deterministic: %v", source, err)
		}
	})
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{
		`a ${{ trigger.payload.id }} b`, `${{ {"a": {"b": 1}}}}`, `$${{ x }}`, `${{ "}}" }}`, `${{ 'a' // }} }}`, "${{ `}}` }}", `$${{${{1}}$$${{`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		v, err := expr.CompileValue(map[string]any{"k": source, source: []any{source}}, nil)
		if err != nil {
			if _, ok := errors.AsType[expr.Errors](err); !ok {
				t.Fatalf("%T", err)
			}
			return
		}
		out, err := v.Eval(sampleEnv(), small)
		if err != nil {
			checkError(t, err, source)
			return
		}
		checkPlain(t, out)
		if _, err := expr.CompileBare(source); err != nil {
			checkError(t, err, source)
		}
	})
}

func FuzzHTML(f *testing.F) {
	for _, one := range [][2]string{
		{`<ul id="menu"><li class=a>1<li>2</ul>`, `#menu > li:nth-child(2n+1), .a ~ li`},
		{`<table><tr><td>1<td>2<tr><th>3</table>`, `tbody tr + tr :not(td, [a="b"])`},
		{`<p><b><div></b></p><svg><path/></svg><!-- x --><script>a<b</script>`, `[a^='b'] *:last-of-type`},
		{`<select><optgroup><option>a<optgroup><option>b</select><dl><dt>x<dd>y</dl>`, `\31 23.\:a`},
	} {
		f.Add(one[0], one[1])
	}
	p, err := expr.Compile(`[htmlFindAll(trigger.payload.text, trigger.payload.selector), htmlText(trigger.payload.text)]`)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, selector string) {
		v, err := p.Eval(&expr.Env{Trigger: expr.Trigger{Payload: map[string]any{"text": text, "selector": selector}}}, small)
		if err != nil {
			checkError(t, err, p.Source())
			return
		}
		checkPlain(t, v)
		for _, element := range v.([]any)[0].([]any) {
			if e := element.(map[string]any); !strings.Contains(text, e["html"].(string)) || e["tag"] == "" {
				t.Fatalf("%q in %q", e, text)
			}
		}
	})
}

func checkError(t *testing.T, err error, source string) {
	t.Helper()
	var e *expr.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T is not an *expr.Error", err)
	}
	switch e.Code {
	case expr.CodeInvalid, expr.CodeFailed, expr.CodeCost:
	default:
		t.Fatalf("code %q", e.Code)
	}
	if e.Message == "internal error" || e.Message == "the expression cannot be parsed" {
		t.Fatalf("%q panicked inside", source)
	}
	if e.Line < 1 || e.Column < 1 || e.Offset < 0 || e.Offset > len(source) {
		t.Fatalf("%q: place %d:%d, offset %d", source, e.Line, e.Column, e.Offset)
	}
}

// checkPlain fails if a result contains a type that it must not contain.
func checkPlain(t *testing.T, v any) {
	t.Helper()
	switch v := v.(type) {
	case nil, bool, int, float64, string, json.Number:
	case []any:
		for _, e := range v {
			checkPlain(t, e)
		}
	case map[string]any:
		for _, e := range v {
			checkPlain(t, e)
		}
	default:
		t.Fatalf("result holds a %T", v)
	}
}
