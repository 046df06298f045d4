package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/expr"
)

// Expressions that are too large or nested too deeply do not compile.
func TestCompileLimits(t *testing.T) {
	t.Parallel()
	for name, source := range exceedingLimits() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := expr.Compile(source)
			var e *expr.Error
			if !errors.As(err, &e) || e.Code != expr.CodeInvalid {
				t.Errorf("%v, want %s", err, expr.CodeInvalid)
			}
		})
	}
}

// Strings and values that are slow to parse are rejected. A quadratic algorithm
// would exceed the timeout of the test.
func TestHostileTemplates(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 3000)
	inner := make([]any, 50_000)
	for i := range inner {
		inner[i] = 1
	}
	inner[0] = "${{ 1 }}"
	for name, in := range map[string]any{
		"comments":    "${{ " + strings.Repeat("{", 100_000) + strings.Repeat("//}}", 200_000),
		"quotes":      strings.Repeat("${{ '", 200_000),
		"unclosed":    strings.Repeat("${{ ", 250_000),
		"many":        strings.Repeat("${{ 1 }}", 501),
		"large":       "${{ 1 }}" + strings.Repeat("x", 1<<20),
		"source":      "${{ 1" + strings.Repeat(" ", 5000) + "}}",
		"long keys":   map[string]any{long: map[string]any{long: inner}},
		"not UTF-8":   "${{ '\xff' }}",
		"only braces": "${{" + strings.Repeat("}", 100_000) + "${{",
	} {
		_, err := expr.CompileValue(in, nil)
		var errs expr.Errors
		if !errors.As(err, &errs) || errs[0].Code != expr.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, in := range map[string]string{
		"escapes": strings.Repeat("$${{", 200_000),
		"dollars": strings.Repeat("$", 1<<20),
		"braces":  strings.Repeat("{{}}", 200_000),
	} {
		v, err := expr.CompileValue(in, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := v.Eval(nil, expr.Budget{}); err != nil || got != strings.ReplaceAll(in, "$${{", "${{") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The same limits apply to computed patterns.
func TestDynamicPatterns(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		`"a" matches ("(a{1000})" + "{1000}")`,
		`"a" matches join(map(1..600, "a"), "")`,
		`"a" matches join(map(1..100, "\\pL"), "")`,
		`"a" matches ("(?i)[" + join(map(1..40, "\\x00-\\x{ffff}"), "") + "]")`,
		`"a" matches (trigger.payload.name + "(")`,
	} {
		e := mustFail(t, source)
		if e.Code != expr.CodeFailed {
			t.Errorf("%s: %v", source, e)
		}
		if strings.Contains(e.Message, "Ada") {
			t.Errorf("%s repeats data: %v", source, e)
		}
	}
}

// Expressions up to the limits compile.
func TestLongExpressionsCompile(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		strings.Repeat("1+", 300) + "1",
		`"a"` + strings.Repeat(` + "b"`, 200),
		"vars" + strings.Repeat(".a", 200),
		strings.Repeat("vars.a == 1 || ", 60) + "true",
		strings.Repeat("[", 45) + strings.Repeat("]", 45),
	} {
		if _, err := expr.Compile(source); err != nil {
			t.Errorf("%.40s: %v", source, err)
		}
	}
}

// An expression cannot reach the host by name or through a value.
func TestCannotReachTheHost(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		`env`, `$env`, `env("HOME")`, `getenv("HOME")`, `os.Getenv("HOME")`, `process.env`, `import("os")`,
		`readFile("/etc/passwd")`, `open("/etc/passwd")`, `http("http://example.com")`, `fetch("http://example.com")`,
		`exec("id")`, `system("id")`, `eval("1")`, `compile("1")`, `reflect`, `runtime`, `self`, `this`, `global`,
		`now().UTC()`, `now().Location()`, `trigger.payload.Eval()`, `run.StartedAt`, `trigger.Payload`,
		`constructor`, `__proto__`, `toString()`, `"".constructor()`, `repeat("x", 1000000)`, `random()`,
		`duration("1h")`, `timezone("UTC")`, `date("2026-01-01", "2006", "../../etc/passwd")`, `bitand(1, 2)`,
		`::now()()`, `fn`, `map`, `let f = upper; f("a")`, `median([1])`, `findLastIndex([1], true)`,
	} {
		if e := mustFail(t, source); e.Code != expr.CodeInvalid {
			t.Errorf("%s: %v", source, e)
		}
	}
	for _, source := range []string{
		`now().UTC`, `now()["Unix"]`, `get(now(), "Unix")`, `trigger.payload.constructor`, `trigger.payload.__proto__`,
		`{}.toString`, `[].length`, `"".constructor`, `get("", "constructor")`, `get(trigger, "Payload")`, `get(steps.get, "Output")`,
	} {
		if got := eval(t, source); got != "null" {
			t.Errorf("%s = %s", source, got)
		}
	}
}

// Go values that are not JSON are rejected as data and as results.
func TestForeignValues(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string]any{
		"struct": struct{ Secret string }{"x"}, "func": func() string { return "x" }, "pointer": &struct{}{},
		"chan": make(chan int), "error": errors.New("x"), "map": map[int]any{1: 2}, "env": sampleEnv(),
	} {
		for _, source := range []string{`trigger.payload`, `trigger.payload.x`, `[trigger.payload]`, `toJSON(trigger)`, `trigger`, `{"a": trigger.payload} == {"a": 1}`} {
			p, err := expr.Compile(source)
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Eval(&expr.Env{Trigger: expr.Trigger{Payload: payload}}, expr.Budget{})
			var e *expr.Error
			if !errors.As(err, &e) || e.Code != expr.CodeFailed {
				t.Errorf("%s of a %s: %v", source, name, err)
			}
		}
	}
}

func exceedingLimits() map[string]string {
	deep := func(open, in, shut string, n int) string {
		return strings.Repeat(open, n) + in + strings.Repeat(shut, n)
	}
	return map[string]string{
		"long":              strings.Repeat("1+", 4096) + "1",
		"nested lists":      deep("[", "1", "]", 51),
		"nested calls":      deep("len(", "1", ")", 60),
		"nested maps":       deep("{a:", "1", "}", 60),
		"nested loops":      deep("map([1],", "1", ")", 60),
		"nested conditions": deep("true ? 1 : (", "1", ")", 60),
		"nested else":       strings.Repeat("true ? 1 : ", 60) + "1",
		"many nots":         strings.Repeat("!", 4000) + "true",
		"many minus":        strings.Repeat("-", 4000) + "1",
		"many parts":        strings.Repeat("1+", 1500) + "1",
		"many members":      "vars" + strings.Repeat(".a", 1500),
		"many indexes":      "vars" + strings.Repeat("[0]", 1200),
		"many optionals":    "vars" + strings.Repeat("?.a", 1200),
		"many elements":     "[" + strings.Repeat("1,", 1500) + "1]",
		"many lets":         strings.Repeat("let a=1;", 500) + "1",
		"many statements":   strings.Repeat("1;", 1500) + "1",
		"pipes":             "1" + strings.Repeat("|len()", 600),
		"open brackets":     strings.Repeat("(", 4000),
		"open braces":       strings.Repeat("{", 4000),
		"open lists":        strings.Repeat("[", 4000),
		"mixed brackets":    strings.Repeat("([{", 1300),
		// Each level of these is compiled twice by the one above.
		"shared comparisons": deep("1<(", "1", ")<2", 60),
		"long pattern":       `"a" matches "` + strings.Repeat("a", 513) + `"`,
		"nested repeat":      `"a" matches "(a{1000}){1000}"`,
		"nested repeat 2":    `"a" matches "((a{30}){30}){2}"`,
		"repeat":             `"a" matches "a{900}b{900}"`,
		"many repeats":       `"a" matches "` + strings.Repeat("a{999}", 80) + `"`,
		"many patterns":      strings.Repeat(`"a" matches "a{400}" or `, 10) + "true",
		"many classes":       `"a" matches "` + strings.Repeat(`\\pL`, 120) + `"`,
		"folded ranges":      `"a" matches "(?i)[` + strings.Repeat("a-\U0010ffff", 80) + `]"`,
		"folded escapes":     `"a" matches "(?i)[` + strings.Repeat(`\\x00-\\x{ffff}`, 30) + `]"`,
		"deep pattern":       `"a" matches "` + strings.Repeat("(", 240) + strings.Repeat(")", 240) + `{3}{3}{3}{3}"`,
	}
}
