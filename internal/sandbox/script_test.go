package sandbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/sandbox"
)

func TestResults(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Size: 2})
	for _, tc := range []struct{ code, input, want string }{
		{"return 1 + 1", "", "2"},
		{"return input", `{"a": [1, "zwei", null, true, 1.5]}`, `{"a":[1,"zwei",null,true,1.5]}`},
		{"return input", "", "null"},
		{"", "", "null"},
		{"return undefined", "", "null"},
		{"return NaN", "", "null"},
		{"return {a: undefined, f() {}, n: NaN, i: Infinity}", "", `{"n":null,"i":null}`},
		{"return [undefined, () => 1]", "", "[null,null]"},
		{"return new Date(0)", "", `"1970-01-01T00:00:00.000Z"`},
		{"return new Date(0).getHours()", "", "0"},
		{"return 'ä€😀\\ud800'", "", `"ä€😀\ud800"`},
		{"return '<&>'", "", `"<&>"`},
		{"return await Promise.resolve(3)", "", "3"},
		{"return Promise.resolve({then: done => done(4)})", "", "4"},
		{"return (async () => { await null; return 5 })()", "", "5"},
		{"const a = await Promise.all([1, 2].map(async x => x * 2)); return a", "", "[2,4]"},
		{"try { await Promise.reject(new Error('x')) } catch (e) { return e.message }", "", `"x"`},
		{"return input.__proto__ === 1 && Object.keys(input).length", `{"__proto__": 1}`, "1"},
		{"x = 1; return x // sloppy, and a comment at the end", "", "1"},
		{"return input?.a?.b ?? 'none'", "", `"none"`},
		{"return [...new Set([1, 1, 2])]", "", "[1,2]"},
		{"return eval('1 + 2') + new Function('return 3')()", "", "6"},
		{"return JSON.parse('{\"a\": 1}').a", "", "1"},
		{"JSON.stringify = () => 'forged'; JSON.parse = null; return {a: 1}", "", `{"a":1}`},
		{"return {toJSON() { return 'mine' }}", "", `"mine"`},
		{"return {get a() { return 1 }}", "", `{"a":1}`},
		{"return new Proxy({a: 1}, {})", "", `{"a":1}`},
	} {
		if diff := cmp.Diff(tc.want, mustRun(t, pool, tc.code, tc.input)); diff != "" {
			t.Errorf("%s\n%s", tc.code, diff)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Size: 2})
	for _, tc := range []struct {
		code         string
		kind         sandbox.Kind
		message      string
		line, column int
	}{
		{"const a = 1;\nreturn a.b.c", sandbox.Exception, "TypeError: Cannot read property 'c' of undefined", 2, 12},
		{"return a", sandbox.Exception, "ReferenceError: a is not defined", 1, 8},
		{"\nthrow new RangeError('too far')", sandbox.Exception, "RangeError: too far", 2, 7},
		{"throw 'text'", sandbox.Exception, "text", 0, 0},
		{"throw {toString() { throw 1 }}", sandbox.Exception, "cannot be shown", 0, 0},
		{"throw Object.create(null)", sandbox.Exception, "cannot be shown", 0, 0},
		{"throw null", sandbox.Exception, "null", 0, 0},
		{"await Promise.reject(new Error('later'))", sandbox.Exception, "Error: later", 1, 22},
		{"await new Promise(() => {})", sandbox.Exception, "never settles", 0, 0},
		{"return new Promise(() => {})", sandbox.Exception, "never settles", 0, 0},
		{"let a = ;", sandbox.Syntax, "SyntaxError: Unexpected token ;", 1, 9},
		{"if (1) {\n  return 1", sandbox.Syntax, "SyntaxError: ", 2, 0},
		{"return 1 }", sandbox.Syntax, "SyntaxError: ", 1, 0},
		{"}), (function () {", sandbox.Syntax, "extra closing bracket", 0, 0},
		{"}); (function () {", sandbox.Syntax, "extra closing bracket", 0, 0},
		{"let a; let a", sandbox.Syntax, "SyntaxError: Identifier 'a' has already been declared", 1, 12},
		{"return () => 1", sandbox.Exception, "a function or a symbol", 0, 0},
		{"return Symbol('s')", sandbox.Exception, "a function or a symbol", 0, 0},
		{"return 10n", sandbox.Exception, "BigInt", 0, 0},
		{"const a = {}; a.a = a; return a", sandbox.Exception, "circular", 0, 0},
		{"return {get a() { throw new Error('no') }}", sandbox.Exception, "encoded as JSON: Error: no", 1, 25},
		{"return {toJSON() { return this.x.y }}", sandbox.Exception, "encoded as JSON: TypeError", 1, 34},
		{"return new Proxy({}, {ownKeys() { throw new Error('no') }})", sandbox.Exception, "encoded as JSON: Error: no", 1, 41},
		{"return require('fs')", sandbox.Exception, "require is not defined", 1, 15},
		{"return process.env", sandbox.Exception, "process is not defined", 1, 8},
		{"return fetch('http://127.0.0.1')", sandbox.Exception, "fetch is not defined", 1, 13},
		{"setTimeout(() => 1, 1)", sandbox.Exception, "setTimeout is not defined", 1, 11},
		{"import('fs')", sandbox.Syntax, "SyntaxError", 1, 1},
		{"return ''.constructor.constructor('return process')()", sandbox.Exception, "process is not defined", 0, 0},
		{"return console.log.constructor('return this.process.exit()')()", sandbox.Exception, "TypeError", 0, 0},
		{"function f() { return f() + 1 }\nreturn f()", sandbox.Exception, "nested too deeply", 1, 24},
		{"const f = () => [1].map(f); f()", sandbox.Exception, "nested too deeply", 0, 0},
		{"const o = {toString() { return '' + o }}; return '' + o", sandbox.Exception, "nested too deeply", 0, 0},
		{"let a = []; for (let i = 0; i < 65; i++) a = [a]; return a", sandbox.TooLarge, "nested more than 64 levels deep", 0, 0},
		{"return 'x'.repeat(5e6)", sandbox.TooLarge, "the limit is 4194304", 0, 0},
		{"return '€'.repeat(2e6)", sandbox.TooLarge, "the limit is 4194304", 0, 0},
	} {
		got, _ := mustFail(t, pool, tc.code, 2*time.Minute)
		if got.Kind != tc.kind || !strings.Contains(got.Message, tc.message) {
			t.Errorf("%s\ngave %s: %s", tc.code, got.Kind, got.Message)
		}
		if tc.line > 0 && (got.Line != tc.line || tc.column > 0 && got.Column != tc.column) {
			t.Errorf("%s\nat %d:%d, want %d:%d", tc.code, got.Line, got.Column, tc.line, tc.column)
		}
	}
}

func TestStack(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	got, _ := mustFail(t, pool, "function inner() {\n  throw new Error('deep')\n}\nfunction outer() { inner() }\nouter()", 2*time.Minute)
	want := []string{"inner (2:9)", "outer (4:25)", "5:6"}
	if diff := cmp.Diff(want, got.Stack); diff != "" {
		t.Error(diff)
	}
}

func TestConsole(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	outcome, err := pool.AcquireAndRun(t.Context(), sandbox.Script{Code: `
		console.log('a', 1, {b: [2]}, null, undefined, true)
		console.info(new Error('told'))
		console.warn()
		console.error(() => 1)
		console.debug({toJSON() { throw 1 }, toString() { throw 2 }})
		console.log('x'.repeat(20000))
	`})
	if err != nil {
		t.Fatal(err)
	}
	want := []sandbox.Line{
		{Level: "info", Text: `a 1 {"b":[2]} null undefined true`},
		{Level: "info", Text: "Error: told"},
		{Level: "warn", Text: ""},
		{Level: "error", Text: "() => 1"},
		{Level: "debug", Text: "(cannot be shown)"},
		{Level: "info", Text: strings.Repeat("x", sandbox.MaxLine-len("…")) + "…"},
	}
	if diff := cmp.Diff(want, outcome.Lines); diff != "" {
		t.Error(diff)
	}
}

// A log is cut at its limit, with a line that says so. Lines that were logged
// before a failure are kept.
func TestLogLimit(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	failure, outcome := mustFail(t, pool, fmt.Sprintf("for (let i = 0; i < %d; i++) console.log(i); throw 1", 2*sandbox.MaxLines), 2*time.Minute)
	if failure.Kind != sandbox.Exception {
		t.Errorf("ended by %+v", failure)
	}
	if len(outcome.Lines) != sandbox.MaxLines+1 {
		t.Fatalf("%d lines", len(outcome.Lines))
	}
	if first, last := outcome.Lines[0].Text, outcome.Lines[sandbox.MaxLines]; first != "0" || last.Level != "warn" || !strings.Contains(last.Text, "the log is full") {
		t.Errorf("first %q, last %+v", first, last)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	for _, tc := range []struct {
		code string
		want *sandbox.Failure
	}{
		{"return await input", nil},
		{"for (;;) {}", nil}, // it is not run
		{"const a = 1\na b", &sandbox.Failure{Kind: sandbox.Syntax, Message: "SyntaxError: Unexpected identifier", Line: 2, Column: 3}},
		{"return 1\n//# sourceMappingURL=/etc/passwd", nil},
	} {
		got, err := pool.Check(t.Context(), "ws", tc.code)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s\n%s", tc.code, diff)
		}
	}
}
