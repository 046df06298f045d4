package sandbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/sandbox"
)

// Scripts that do not end by themselves are ended, and the next one works.
func TestEndless(t *testing.T) {
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
			if got := succeed(t, pool, "return 1", ""); got != "1" {
				t.Fatal(got)
			}
			begun := time.Now()
			failure, _ := fail(t, pool, code, limit)
			if failure.Kind != sandbox.Timeout && failure.Kind != sandbox.Memory {
				t.Errorf("ended by %+v", failure)
			}
			if took := time.Since(begun); took > limit+time.Second {
				t.Errorf("took %v", took)
			}
			if got := succeed(t, pool, "return 2", ""); got != "2" {
				t.Error(got)
			}
		})
	}
}

// Scripts that take all the memory they can get are ended before it is much.
// They run one after the other: what they do is hard on the machine.
func TestMemory(t *testing.T) {
	for name, code := range map[string]string{
		"arrays":    "let a = []; for (;;) a.push(new Array(1e6).fill(1))",
		"sparse":    "let a = []; for (;;) a.push(new Array(1e6))",
		"objects":   "let a = []; for (let i = 0;; i++) a.push({i, s: 'x' + i})",
		"repeat":    "return 'x'.repeat(1 << 28).length",
		"repeats":   "let a = []; for (;;) a.push('x'.repeat(1 << 20))",
		"doubling":  "let s = 'x'; for (;;) s += s",
		"unicode":   "let s = '€'; for (;;) s += s",
		"buffer":    "return new ArrayBuffer(1e10).byteLength",
		"buffers":   "let a = []; for (;;) a.push(new Uint8Array(1e7).fill(1))",
		"typed":     "return new Float64Array(1e9).length",
		"join":      "return new Array(1e8).join('xxxxxxxxxx').length",
		"pad":       "return ''.padEnd(2 ** 29, 'ab').length",
		"map":       "const m = new Map(); for (let i = 0;; i++) m.set(i, [i])",
		"closures":  "let f = () => 1; for (;;) { const g = f; f = () => g }",
		"replace":   "return 'x'.repeat(1e6).replace(/x/g, 'y'.repeat(1e4)).length",
		"json":      "let a = {}; for (let i = 0; i < 30; i++) a = {l: a, r: a}; return a",
		"nested":    "return JSON.parse('['.repeat(1e6) + ']'.repeat(1e6))",
		"deep":      "let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return a",
		"recursion": "const f = () => { const a = new Array(1e5).fill(0); return f() + a.length }; return f()",
		"code":      "return eval('('.repeat(2e5))",
		"promises":  "let a = []; for (;;) a.push(Promise.resolve().then(() => 1))",
		"log":       "for (;;) console.log('x'.repeat(1 << 27))",
		"symbols":   "for (let i = 0;; i++) Symbol.for('s' + i)",
	} {
		t.Run(name, func(t *testing.T) {
			pool := newPool(t, sandbox.Config{})
			succeed(t, pool, "return 1", "")
			peak := watchPeak(t, pool)
			failure, _ := fail(t, pool, code, 8*time.Second)
			if failure.Kind != sandbox.Memory {
				t.Errorf("ended by %+v", failure)
			}
			if got := peak(); got > 6*memory {
				t.Errorf("the process took %d MiB", got>>20)
			} else {
				t.Logf("%s; at most %d MiB", failure.Message, got>>20)
			}
			if got := succeed(t, pool, "return 2", ""); got != "2" {
				t.Error(got)
			}
		})
	}
}

// Garbage does not count: a script may make much more of it than it may keep.
func TestGarbage(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	const code = "let n = 0; for (let i = 0; i < 120; i++) n += 'x'.repeat(1 << 20).length; return n"
	for range 3 {
		if got := succeed(t, pool, code, ""); got != "125829120" {
			t.Fatal(got)
		}
	}
}

// What a script may keep is near what is promised.
func TestMemoryIsGranted(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	const code = "const a = []; for (let i = 0; i < 40; i++) a.push(new Uint8Array(1 << 20).fill(1)); return a.length"
	for range 5 {
		if got := succeed(t, pool, code, ""); got != "40" {
			t.Fatal(got)
		}
	}
}

// One script leaves nothing behind for the next, although both run in the same
// process: whatever it changes belongs to its own runtime.
func TestNothingSurvives(t *testing.T) {
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
	before := succeed(t, pool, state, "")
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
		if _, err := pool.Run(t.Context(), sandbox.Script{Code: code}); err != nil {
			t.Logf("%s\n%v", code, err) // some break themselves
		}
		if after := succeed(t, pool, state, ""); after != before {
			t.Errorf("after\n%s\nthe next script sees\n%s\nand not\n%s", code, after, before)
		}
	}
	if !strings.Contains(before, `"undefined",null,null,null,1,"[1]",false,0,false`) {
		t.Errorf("the first script sees %s", before)
	}
}

// Compiling is as hostile as running: it is bounded too.
func TestHostileCode(t *testing.T) {
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
		begun := time.Now()
		if _, err := pool.Check(t.Context(), code); err != nil {
			t.Errorf("%.10s: %v", code, err)
		}
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("%.10s took %v", code, took)
		}
		if got := succeed(t, pool, "return 2", ""); got != "2" {
			t.Error(got)
		}
	}
}
