package sandbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/sandbox"
	"github.com/stepmill/stepmill/test/lane"
)

// Scripts that never end are killed, and the next script works.
func TestEndlessScriptsTimeOut(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	for name, code := range map[string]string{
		"loop":         "for (;;) {}",
		"caught":       "for (;;) { try { for (;;) {} } catch (e) {} }",
		"promises":     "const f = () => Promise.resolve().then(f); await f()",
		"regex":        "return /^(?=a)(a+)+$/.test('a'.repeat(40) + 'b')",
		"backtracking": "return /(a*)*\\1b/.test('a'.repeat(60))",
		"native":       "return new Array(1e9).join()",
		"sort":         "[3, 1, 2].sort(() => { for (;;) {} })",
		"getter":       "return {get a() { for (;;) {} }}",
		"toJSON":       "return {toJSON() { for (;;) {} }}",
		"thrown":       "throw {toString() { for (;;) {} }}",
		"stack":        "throw {get stack() { for (;;) {} }}",
		"thenable":     "return {then() { for (;;) {} }}",
		"proxy":        "return new Proxy({}, {ownKeys() { for (;;) {} }})",
		"generator":    "for (const x of (function* () { for (;;) yield 1 })()) {}",
		"bigint":       "let n = 3n; for (;;) n = n * n",
		"spread":       "let a = [1]; for (;;) a = [...a, ...a]",
		"finally":      "try { for (;;) {} } finally { for (;;) {} }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newPool(t, sandbox.Config{})
			if got := mustRun(t, pool, "return 1", ""); got != "1" {
				t.Fatal(got)
			}
			failure, _ := mustFail(t, pool, code, limit)
			if failure.Kind != sandbox.Timeout && failure.Kind != sandbox.Memory {
				t.Errorf("ended by %+v", failure)
			}
			if got := mustRun(t, pool, "return 2", ""); got != "2" {
				t.Error(got)
			}
		})
	}
}

// Scripts that allocate without limit are killed early. They run one at a time,
// because they put load on the machine.
func TestMemory(t *testing.T) {
	lane.NotShort(t)
	for _, tc := range []struct {
		name, code string
		slow       bool
	}{
		{"sparse", "let a = []; for (;;) a.push(new Array(1e6))", false},
		{"objects", "let a = []; for (let i = 0;; i++) a.push({i, s: 'x' + i})", true},
		{"repeat", "return 'x'.repeat(1 << 28).length", false},
		{"repeats", "let a = []; for (;;) a.push('x'.repeat(1 << 20))", false},
		{"doubling", "let s = 'x'; for (;;) s += s", false},
		{"unicode", "let s = '€'; for (;;) s += s", false},
		{"buffer", "return new ArrayBuffer(1e10).byteLength", false},
		{"buffers", "let a = []; for (;;) a.push(new ArrayBuffer(1e6))", false},
		{"typed", "return new Float64Array(1e9).length", false},
		{"join", "return new Array(1e8).join('xxxxxxxxxx').length", true},
		{"pad", "return ''.padEnd(2 ** 29, 'ab').length", false},
		{"map", "const m = new Map(); for (let i = 0;; i++) m.set(i, [i])", true},
		{"closures", "let f = () => 1; for (;;) { const g = f; f = () => g }", true},
		{"json", "let a = 'x'.repeat(1 << 16); for (let i = 0; i < 16; i++) a = {l: a, r: a}; return a", true},
		{"nested", "return JSON.parse('['.repeat(1e6) + ']'.repeat(1e6))", false},
		{"deep", "let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return a", true},
		{"code", "return eval('('.repeat(2e5))", true},
		{"promises", "let a = []; for (;;) a.push(Promise.resolve().then(() => 1))", true},
		{"log", "for (;;) console.log('x'.repeat(1 << 27))", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.slow && sandbox.MappingFactor > 1 {
				t.Skip("too slow under the race detector")
			}
			pool := newPool(t, sandbox.Config{})
			mustRun(t, pool, "return 1", "")
			peak := watchPeak(t, pool)
			failure, _ := mustFail(t, pool, tc.code, 2*time.Minute)
			if failure.Kind != sandbox.Memory {
				t.Errorf("ended by %+v", failure)
			}
			// The kernel enforces this, even if the monitor of the process does not run in time.
			if got := peak(); got > 6*memory*sandbox.MappingFactor {
				t.Errorf("the process took %d MiB", got>>20)
			} else {
				t.Logf("%s; at most %d MiB", failure.Message, got>>20)
			}
			if got := mustRun(t, pool, "return 2", ""); got != "2" {
				t.Error(got)
			}
		})
	}
}

// Garbage does not count: a script may allocate more than its limit over time.
func TestGarbageDoesNotCountAsMemory(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	const code = "let n = 0; for (let i = 0; i < 120; i++) n += new ArrayBuffer(1 << 20).byteLength; return n"
	for range 3 {
		if got := mustRun(t, pool, code, ""); got != "125829120" {
			t.Fatal(got)
		}
	}
}

// A script can use nearly all of its memory limit.
func TestScriptsMayUseTheirMemory(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	const code = "const a = []; for (let i = 0; i < 40; i++) a.push(new ArrayBuffer(1 << 20)); return a.length"
	for range 5 {
		if got := mustRun(t, pool, code, ""); got != "40" {
			t.Fatal(got)
		}
	}
}

// A script cannot affect the next one, although both run in the same process:
// each has its own runtime.
func TestScriptsAreIsolatedFromEachOther(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	const state = `
		const seen = [];
		const walk = (o, path) => {
			for (const key of Reflect.ownKeys(o)) {
				const d = Object.getOwnPropertyDescriptor(o, key);
				seen.push(path + String(key) + ':' + typeof d.value + d.writable + d.enumerable + d.configurable);
				if (d.value && (typeof d.value === 'object' || typeof d.value === 'function') && path.length < 40 && key !== 'constructor' && d.value !== globalThis) walk(d.value, path + String(key) + '.');
			}
		};
		walk(globalThis, '');
		return [seen.length, seen.join('|').length, typeof x, ({}).x, [].y, ''.z, Math.abs(-1), JSON.stringify([1]),
			Symbol.for('shared') === globalThis.shared, new Date(0).getTimezoneOffset(), /a/.test('b'), Number.prototype.w, Function.prototype.v,
			Symbol.iterator.description, RegExp.$1]`
	before := mustRun(t, pool, state, "")
	for _, code := range []string{
		"x = 1; globalThis.y = 2; this.z = 3; var w = 4",
		"Object.prototype.x = 1; Array.prototype.y = 1; String.prototype.z = 1; Number.prototype.w = 1; Function.prototype.v = 1",
		"globalThis.shared = Symbol.for('shared')",
		"Math.abs = () => 'mine'; JSON.stringify = () => 'mine'; Date.prototype.getTimezoneOffset = () => 7",
		"RegExp.prototype.test = () => true; /(q)/.exec('q')",
		"Promise.prototype.then = null; Symbol.iterator.x = 1",
		"Object.defineProperty(Object.prototype, 'x', {get() { return 'mine' }})",
		"delete globalThis.Math; delete globalThis.console; delete Array.prototype.map",
		"Object.freeze(Object.prototype); Object.freeze(globalThis); Object.preventExtensions(Array.prototype)",
		"Object.setPrototypeOf(Array.prototype, null); Object.setPrototypeOf(globalThis, null)",
		"for (const k of Reflect.ownKeys(globalThis)) { try { globalThis[k] = null } catch (e) {} }",
		"console.log = null; console.error.x = 1; Object.getPrototypeOf(async function () {}).x = 1",
		"Object.getPrototypeOf(function* () {}).prototype.next = null; [][Symbol.iterator]().__proto__.next = null",
	} {
		if _, err := pool.AcquireAndRun(t.Context(), sandbox.Script{Code: code}); err != nil {
			t.Logf("%s\n%v", code, err) // some scripts fail
		}
		if after := mustRun(t, pool, state, ""); after != before {
			t.Errorf("after\n%s\nthe next script sees\n%s\nand not\n%s", code, after, before)
		}
	}
	if !strings.Contains(before, `"undefined",null,null,null,1,"[1]",false,0,false`) {
		t.Errorf("the first script sees %s", before)
	}
}

// Compiling hostile code is bounded like running it.
func TestCompilingHostileCodeIsBounded(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	for _, code := range []string{
		strings.Repeat("(", 200_000),
		strings.Repeat("[", 200_000),
		"return " + strings.Repeat("!", 200_000) + "1",
		strings.Repeat("a=>", 80_000) + "1",
		strings.Repeat("`${", 80_000),
		"return 1" + strings.Repeat("+1", 100_000),
		strings.Repeat("{", 200_000) + strings.Repeat("}", 200_000)[:50_000],
	} {
		if _, err := pool.Check(t.Context(), "ws", code); err != nil {
			t.Errorf("%.10s: %v", code, err)
		}
		if got := mustRun(t, pool, "return 2", ""); got != "2" {
			t.Error(got)
		}
	}
}

func TestCompilingHasLimitedProcessorTime(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Size: 1})
	failure, err := pool.Check(t.Context(), "ws", slowToCompile)
	if err != nil || failure == nil || failure.Kind != sandbox.Timeout {
		t.Errorf("got %v, %v, want a timeout", failure, err)
	}
}
