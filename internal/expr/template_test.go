package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/test/lane"
)

func render(t testing.TB, source string) any {
	t.Helper()
	tpl, err := expr.CompileTemplate(source)
	if err != nil {
		t.Fatalf("compile %q: %v", source, err)
	}
	v, err := tpl.Eval(sampleEnv(), expr.Budget{})
	if err != nil {
		t.Fatalf("eval %q: %v", source, err)
	}
	return v
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]any{
		// The result of an expression that is the whole string keeps its type.
		`${{ trigger.payload.id }}`:   42,
		`${{trigger.payload.price}}`:  9.5,
		`${{ trigger.payload.ok }}`:   true,
		`${{ trigger.payload.no }}`:   nil,
		`${{ trigger.payload.tags }}`: []any{"a", "b", "c"},
		`${{ {"a": {"b": 1}} }}`:      map[string]any{"a": map[string]any{"b": 1}},
		`${{ {"a": {"b": 1}}}}`:       map[string]any{"a": map[string]any{"b": 1}},
		`${{ "}}" }}`:                 "}}",
		"${{ `}}` + '}}' }}":          "}}}}",
		`${{ "\"}}" }}`:               `"}}`,
		"${{ 1 // a }}b":              "1b", // a comment ends with its expression
		"${{ 1 /* }} */ + 1 }}":       2,
		// Otherwise the result becomes text.
		`id ${{ trigger.payload.id }}`:   "id 42",
		`${{ trigger.payload.id }} `:     "42 ",
		`${{ 1 }}${{ 2 }}`:               "12",
		`x${{ 0.1 + 0.2 }}`:              "x0.30000000000000004",
		`x${{ 1e21 }}`:                   "x1e+21",
		`x${{ 1e-7 }}`:                   "x1e-7",
		`x${{ 42.0 }}`:                   "x42",
		`x${{ 1234567890123 }}`:          "x1234567890123",
		`x${{ nil }}y`:                   "xy",
		`x${{ true }}`:                   "xtrue",
		`x${{ [1, "a", nil] }}`:          `x[1,"a",null]`,
		`x${{ {"b": 1, "a": "<é\n>"} }}`: `x{"a":"<é\n>","b":1}`,
		`x${{ now() }}`:                  "x2026-11-15T09:30:00.000Z",
		`https://a.example/${{ urlEncode(item.sku) }}?q=1`: "https://a.example/x?q=1",
		// Text without an expression.
		``:                          "",
		`no expression`:             "no expression",
		`$ {{ }} $$ {`:              "$ {{ }} $$ {",
		`$${{ x }}`:                 "${{ x }}",
		`$$${{ x }}`:                "$${{ x }}",
		`a $${{ b }} ${{ 1 }} $${{`: "a ${{ b }} 1 ${{",
		`${{ "$" }}${{ 5 }}`:        "$5",
		"ü\n${{ 1 }}\n$${{":         "ü\n1\n${{",
	} {
		if diff := cmp.Diff(want, render(t, source)); diff != "" {
			t.Errorf("%q: %s", source, diff)
		}
	}
}

// Text that comes from data is never parsed for expressions.
func TestTemplateSinglePass(t *testing.T) {
	t.Parallel()
	for _, source := range []string{`${{ trigger.payload.env }}`, `x${{ trigger.payload.env }}`, `${{ "$" + "{{ secrets.token }}" }}`} {
		got, _ := render(t, source).(string)
		if !strings.HasSuffix(got, "${{ secrets.token }}") {
			t.Errorf("%s = %q", source, got)
		}
	}
}

func TestTemplateErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		source, code         string
		line, column, offset int
	}{
		{`a ${{ 1`, expr.CodeInvalid, 1, 3, 2},
		{`a ${{ don't }}`, expr.CodeInvalid, 1, 3, 2},
		{`${{ "${{ secrets.token }}"`, expr.CodeInvalid, 1, 1, 0},
		{`ok ${{ 1 }} ${{ banana }}`, expr.CodeInvalid, 1, 17, 16},
		{"ü\nx ${{\n banana }}", expr.CodeInvalid, 3, 2, 10},
		{`${{ }}`, expr.CodeInvalid, 1, 4, 3},
		{`a ${{ 1 }} ${{ 1 / 0 }}`, expr.CodeFailed, 1, 18, 17},
	} {
		tpl, err := expr.CompileTemplate(tc.source)
		if err == nil {
			_, err = tpl.Eval(sampleEnv(), expr.Budget{})
		}
		var e *expr.Error
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", tc.source, err)
			continue
		}
		if e.Code != tc.code || e.Line != tc.line || e.Column != tc.column || e.Offset != tc.offset {
			t.Errorf("%q: %s at %d:%d offset %d, want %+v", tc.source, e.Code, e.Line, e.Column, e.Offset, tc)
		}
	}
}

func TestTemplateRefs(t *testing.T) {
	t.Parallel()
	tpl, err := expr.CompileTemplate(`${{ steps.a.output }} and ${{ steps.b.output }}${{ item }}`)
	if err != nil {
		t.Fatal(err)
	}
	want := expr.Refs{
		Steps: []expr.Ref{{Name: "a", Line: 1, Column: 11, Offset: 10}, {Name: "b", Line: 1, Column: 37, Offset: 36}},
		Item:  true,
		Words: []string{"steps.output", "item"},
	}
	if diff := cmp.Diff(want, tpl.Refs()); diff != "" {
		t.Error(diff)
	}
}

// Any text that is escaped as documented evaluates to itself.
func TestTemplateLiteralRoundTrip(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(
			rapid.String(),
			rapid.StringOf(rapid.SampledFrom([]rune("${}`'\"x \n"))),
		).Draw(rt, "text")
		tpl, err := expr.CompileTemplate(strings.ReplaceAll(text, "${{", "$${{"))
		if err != nil {
			rt.Fatal(err)
		}
		got, err := tpl.Eval(nil, expr.Budget{})
		if err != nil || got != text {
			rt.Fatalf("%q came out as %q, %v", text, got, err)
		}
	})
}

// Any data is inserted unchanged between the surrounding text.
func TestTemplateData(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(rt *rapid.T) {
		data := rapid.String().Draw(rt, "data")
		before := rapid.StringMatching(`[a-z}{ ]{0,5}`).Draw(rt, "before")
		tpl, err := expr.CompileTemplate(before + `${{ trigger.payload }}` + before)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := tpl.Eval(&expr.Env{Trigger: expr.Trigger{Payload: data}}, expr.Budget{})
		if err != nil || got != before+data+before {
			rt.Fatalf("got %q, %v", got, err)
		}
	})
}
