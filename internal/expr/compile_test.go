package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/expr"
)

func TestCompileErrors(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		``:                        "the expression is empty",
		"  \n":                    "the expression is empty",
		"a\xff":                   "not valid UTF-8",
		`1 +`:                     "unexpected end of the expression",
		`triger.payload`:          "unknown name triger (did you mean \"trigger\"?)",
		`step.get.output`:         "unknown name step (did you mean \"steps\"?)",
		`banana`:                  "an expression can use trigger, steps, item, index, previous, run, workflow, secrets, vars, links, response, cursor",
		`null`:                    "unknown name null (write nil)",
		`upper`:                   "upper is a function: write upper(…)",
		`trigger.paylod`:          "trigger has no paylod (did you mean \"payload\"?); it has type, id, payload, files, headers, query",
		`trigger["body"].x`:       "trigger has no body",
		`run.started`:             "run has no started (did you mean \"started_at\"?)",
		`steps.get.outputs`:       "steps.get has no outputs (did you mean \"output\"?)",
		`uper("a")`:               "unknown function uper (did you mean \"upper\"?)",
		`upper()`:                 "upper takes 1 argument, got 0: upper(text) string",
		`trim("a", "b", "c")`:     "trim takes 1 argument at least and 2 arguments at most, got 3",
		`concat()`:                "concat takes 1 argument or more, got 0",
		`secrets`:                 "a secret needs a literal name",
		`secrets[trigger.id]`:     "a secret needs a literal name",
		`links`:                   "a link needs the literal id of its step",
		`links.ask`:               "a link needs the literal id of its step",
		`links[trigger.id].page`:  "a link needs the literal id of its step",
		`links.ask.url`:           "links.ask has no url",
		`toJSON(secrets)`:         "a secret needs a literal name",
		`"a".upper()`:             "values have no methods",
		`trigger.payload.x()`:     "values have no methods",
		`trigger.payload()`:       "values have no methods",
		`b"bytes"`:                "byte strings are not available",
		`let trigger = 1; 2`:      "the name trigger is already in use",
		`let len = 1; 2`:          "the name len is already in use",
		`let a = 1; let a = 2; a`: "the name a is already in use",
		`map([1], #acc)`:          "#acc can only be used inside reduce",
		`map([1], #foo)`:          "unknown name #foo",
		`#`:                       `unexpected "#"`,
		`"a" matches "("`:         "missing closing )",
		`a == ${{ b }}`:           "${{ }} goes around the whole expression",
		`99999999999999999999`:    "is too large",
		`$env`:                    "unknown name $env",
		`$env["trigger"]`:         "unknown name $env",
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			_, err := expr.Compile(source)
			var e *expr.Error
			if !errors.As(err, &e) || e.Code != "expression_invalid" || !strings.Contains(e.Message, want) {
				t.Errorf("%s: %v, want %q", source, err, want)
			}
		})
	}
}

func TestErrorPlace(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		source               string
		line, column, offset int
	}{
		{`1 + banana`, 1, 5, 4},
		{"1 +\n  banana", 2, 3, 6},
		{`"ü" + banana`, 1, 7, 7},
		{`map([1], {a: 1, b: banana})`, 1, 20, 19},
		{`[{a: 1}, {b: upper({c: 2}, {}, banana)}]`, 1, 14, 13},
		{`1 + upper(1)`, 1, 5, 4},
		{`map([1, 0], 1 / #)`, 1, 15, 14},
	} {
		e := mustFail(t, tc.source)
		if e.Line != tc.line || e.Column != tc.column || e.Offset != tc.offset {
			t.Errorf("%s: %d:%d offset %d, want %d:%d offset %d", tc.source, e.Line, e.Column, e.Offset, tc.line, tc.column, tc.offset)
		}
		if e.Source != tc.source {
			t.Errorf("%s: source is %s", tc.source, e.Source)
		}
	}
}

func TestCompileBare(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		`trigger.payload.id > 41`,
		`${{ trigger.payload.id > 41 }}`,
		"\n ${{trigger.payload.id > 41}} \n",
		`${{ {"a": {"b": true}}.a.b }}`,
		`"${{" != "}}"`,
	} {
		p, err := expr.CompileBare(source)
		if err != nil {
			t.Errorf("%q: %v", source, err)
			continue
		}
		if ok, err := p.EvalBool(sampleEnv(), expr.Budget{}); err != nil || !ok {
			t.Errorf("%q = %v, %v", source, ok, err)
		}
	}
	for source, want := range map[string]int{
		`${{ true }} and ${{ true }}`: 0,
		`${{ true }} more`:            0,
		`${{ true`:                    0,
		"  ${{ banana }}":             6,
		`not ${{ true }}`:             5,
		``:                            0,
	} {
		_, err := expr.CompileBare(source)
		var e *expr.Error
		if !errors.As(err, &e) || e.Code != expr.CodeInvalid || e.Offset != want {
			t.Errorf("%q: %v (offset %+v), want offset %d", source, err, e, want)
		}
	}
}

func TestEvalBoolAndList(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`true`: "true", `trigger.payload.no`: "false", `1 > 2`: "false", `"yes"`: "expected true or false, got string",
	} {
		p, err := expr.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		ok, err := p.EvalBool(sampleEnv(), expr.Budget{})
		if got := asJSON(t, ok); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v, want %s", source, ok, err, want)
		}
	}
	for source, want := range map[string]string{
		`[1, 2]`: "[1,2]", `trigger.payload.no`: "null", `{"a": 1}`: "expected an array, got map",
	} {
		p, err := expr.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		items, err := p.EvalList(sampleEnv(), expr.Budget{})
		if got := asJSON(t, items); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v, want %s", source, items, err, want)
		}
	}
}

func TestRefs(t *testing.T) {
	t.Parallel()
	p, err := expr.Compile(`steps.a.output + steps["b"].output + steps.a?.status + secrets.key +
		vars.region + map(steps.c, item) + string(index) + links.d.page + links.d?.callback`)
	if err != nil {
		t.Fatal(err)
	}
	want := expr.Refs{
		Steps: []expr.Ref{
			{Name: "a", Line: 1, Column: 7, Offset: 6},
			{Name: "b", Line: 1, Column: 23, Offset: 22},
			{Name: "c", Line: 2, Column: 27, Offset: 95},
		},
		Secrets: []expr.Ref{{Name: "key", Line: 1, Column: 64, Offset: 63}},
		Vars:    []expr.Ref{{Name: "region", Line: 2, Column: 8, Offset: 76}},
		Links:   []expr.Ref{{Name: "d", Line: 2, Column: 60, Offset: 128}},
		Item:    true, Index: true,
		Words: []string{
			"steps.output", "steps.status", "secrets", "vars", "map/2", "steps", "item", "string/1", "index", "links.page", "links.callback",
		},
	}
	if diff := cmp.Diff(want, p.Refs()); diff != "" {
		t.Error(diff)
	}
	for source, want := range map[string]expr.Refs{
		`steps[trigger.id]`: {AllSteps: true},
		`toJSON(steps)`:     {AllSteps: true},
		`vars["a" + "b"]`:   {AllVars: true},
		`len(vars)`:         {AllVars: true},
		`"steps.a"`:         {},
		`workflow.version`:  {Version: true},
		`toJSON(workflow)`:  {Version: true},
		`workflow.name`:     {},
	} {
		p, err := expr.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Refs()
		if got.AllSteps != want.AllSteps || got.AllVars != want.AllVars || got.Version != want.Version || len(got.Steps)+len(got.Vars) != 0 {
			t.Errorf("%s: %+v", source, got)
		}
	}
}
