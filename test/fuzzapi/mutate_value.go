package fuzzapi

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// valueMutations change the body as a value. They leave it well-formed JSON, except
// where a replacement is a malformed literal.
var valueMutations = []mutation{
	{"limits of the schema", useLimits},
	{"replaced value", replaceValue},
	{"replaced value", replaceValue},
	{"removed member", removeMember},
	{"unknown member", addMember},
	{"repeated member", repeatMember},
	{"renamed member", renameMember},
	{"deep nesting", nest},
	{"long list", lengthen},
}

// change replaces one of the places in the body that have a wanted value.
func (g *generator) change(d *draft, wanted func(any) bool, with func(any) any) bool {
	if !d.hasValue {
		return false
	}
	places := 0
	walk(d.value, func(at any, _ func(any)) {
		if wanted(at) {
			places++
		}
	})
	if places == 0 {
		return false
	}
	chosen := g.random.IntN(places)
	d.value = walk(clone(d.value), func(at any, replace func(any)) {
		if !wanted(at) {
			return
		}
		if chosen == 0 {
			replace(with(at))
		}
		chosen--
	})
	return true
}

func isAnything(any) bool { return true }

func isObject(v any) bool {
	o, ok := v.(object)
	return ok && len(o) > 0
}

// useLimits generates the body again, at the limits of its schema.
func useLimits(g *generator, d *draft) bool {
	content, ok := d.op.Bodies[d.get("Content-Type")]
	if !ok || !d.hasValue {
		return false
	}
	g.edge = true
	d.value = g.localize(g.value("", content.At("schema"), 0))
	g.edge = false
	return true
}

func replaceValue(g *generator, d *draft) bool {
	return g.change(d, isAnything, func(any) any {
		if g.chance(50) {
			return pick(g.random, hostileTexts)
		}
		return pick(g.random, hostileValues)
	})
}

// hostileValues are values of the wrong type, at the limits of number types, and
// malformed ones.
var hostileValues = []any{
	nil, true, false, object{}, []any{}, []any{nil}, object{{"", nil}}, []any{[]any{}}, number("0"), number("-1"), number("1"), number("1.5"), number("-0"),
	number("9223372036854775807"), number("9223372036854775808"), number("-9223372036854775808"), number("-9223372036854775809"), number("18446744073709551616"),
	number("2147483648"), number("9007199254740993"), number("1e2"), number("1e308"), number("1e309"), number("1e-400"), number("1E+2"), number("0.1e1"), number("1.0"),
	literal("1e999999999"), literal("-1e999999999"), literal("1e-999999999"), literal("NaN"), literal("Infinity"), literal("-Infinity"), literal("01"), literal("+1"), literal("0x10"),
	literal("1."), literal(".5"), literal("1_000"), literal("undefined"), literal("TRUE"), literal("'x'"), literal(""), literal(strings.Repeat("9", 400)), literal("0." + strings.Repeat("0", 400) + "1"),
	literal(`"\ud800"`), literal(`"\udc00\ud800"`), literal("\"\xff\""), literal("\"\xc0\x80\""), literal(`"\x41"`), literal(`"` + "\n" + `"`), literal(`"\u12"`), literal(`"\u0000"`), literal("\"a\x00b\""),
	literal(`{"a":1,"a":2}`), literal(`{"a":1,"\u0061":2}`), literal(`[1,]`), literal(`{"a":1,}`), literal(`[`), literal(`{"a"}`),
}

// hostileTexts are strings that are easy to mistake for something else.
var hostileTexts = []any{
	"", " ", "\t\n", "\x00", "a\x00b", "\ufeff", "\u202egnirts", "\u200b", "e\u0301", "\U0001f469\u200d\U0001f52c", "\u0130", "ß", "İ", "\uffff", "\U0010ffff", "null", "undefined", "NaN", "-1", "1e999",
	strings.Repeat("x", 201), strings.Repeat("x", 5000), strings.Repeat("漢", 300), strings.Repeat("a ", 3000), strings.Repeat("\u0301", 500), "../../x", "..\\x", "%00", "%2e%2e%2f", "a/b", "/", "~1~0", "[0]", "a[0].b", "a.b.c", "*", "%", "_", "'", "\"", "`", "\\",
	"'; DROP TABLE runs; --", "' OR '1'='1", "<script>alert(1)</script>", "{{7*7}}", "${{", "}}", "${{ }}", "${{ 1 / 0 }}", "${{ secrets }}", "${{ env.HOME }}", "${{ trigger.payload[", "${{ '" + strings.Repeat("x", 1000) + "' }}", "${{ " + strings.Repeat("(", 500) + " }}",
	"${{ " + strings.Repeat("1 + ", 2000) + "1 }}", "${{ 1..1000000000 }}", "${{ map(1..100000, # * 2) }}", "${{ repeat('x', 100000000) }}", "${{ \"\\xff\" }}", "${{ 9223372036854775807 + 1 }}", "${{ steps.nothing.output }}", "__proto__", "constructor", "toString",
	"https://", "http://", "http:///x", "://", "http://127.0.0.1:1/", "http://10.0.0.1/", "http://[::1]/", "http://0x7f.1/", "http://169.254.169.254/", "http://localhost/", "ftp://127.0.0.1/", "file:///nothing", "javascript:alert(1)", "http://a b/", "http://user:pass@127.0.0.1/", "http://[::1%25lo]/", "http://127.0.0.1:99999/",
	"2026-02-30T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2026-01-01T00:00:00+99:99", "2026-01-01T00:00:60Z", "2026-01-01", "10000-01-01T00:00:00Z", "-1s", "0s", "999999999d", "999999999d999999999d999999999d", "1e9s", "1.5h", "9223372036854775807ms", "P1D", "1h 30m",
	"* * * * *", "@every 1ns", "@every 10s", "60 * * * *", "*/0 * * * *", "0 0 30 2 *", "@reboot", "0 0 0 0 0", "TZ=UTC * * * * *", "CRON_TZ=nowhere * * * * *", "Local", "Etc/Nowhere", "../UTC", "wf_", "wf_01m7f8njhve3pt0yekqqme4qcm", "run_00000000000000000000000000", "WF_01M7F8NJHVE3PT0YEKQQME4QCM", "a@b", "a@b@c", "@", "\"a b\"@example.com", "a@[127.0.0.1]",
	"while (true) {}", strings.Repeat("return ", 50), "throw null", "return new Array(1e9).fill('x')", "import('fs')", "return this.constructor.constructor('return process')()", "(", "return {toJSON() { throw 1 }}", "return 10n", "return () => 1", "let a = {}; a.a = a; return a",
}

func removeMember(g *generator, d *draft) bool {
	return g.change(d, isObject, func(at any) any {
		o := slices.Clone(at.(object))
		i := g.random.IntN(len(o))
		return slices.Delete(o, i, i+1)
	})
}

func addMember(g *generator, d *draft) bool {
	isAnyObject := func(v any) bool { _, ok := v.(object); return ok }
	return g.change(d, isAnyObject, func(at any) any {
		name := pick(g.random, []string{"unknown", "", "id", "state", "__proto__", "$ref", "a/b~c", "\x00", "\u202e", "ID", strings.Repeat("n", 3000), "créé", "workspace_id", "\ufeff"})
		return append(slices.Clone(at.(object)), member{name, pick(g.random, hostileValues)})
	})
}

func repeatMember(g *generator, d *draft) bool {
	return g.change(d, isObject, func(at any) any {
		o := at.(object)
		again := pick(g.random, o)
		if g.chance(50) {
			again.value = pick(g.random, hostileValues)
		}
		return append(slices.Clone(o), again)
	})
}

func renameMember(g *generator, d *draft) bool {
	return g.change(d, isObject, func(at any) any {
		o := slices.Clone(at.(object))
		i := g.random.IntN(len(o))
		name := o[i].name
		o[i].name = pick(g.random, []string{strings.ToUpper(name), name + " ", " " + name, name + "s", name + "\x00", name + "\u200b", strings.ReplaceAll(name, "_", "-"), strings.ReplaceAll(name, "s", "\u017f")})
		return o
	})
}

// nest wraps a value in many levels. The document allows 64.
func nest(g *generator, d *draft) bool {
	levels := pick(g.random, []int{60, 63, 64, 65, 100, 1000, 10_001, 100_000})
	return g.change(d, isAnything, func(at any) any {
		inner := string(encode(at))
		if !utf8.ValidString(inner) || len(inner) > 10_000 {
			inner = "1"
		}
		open, end := "[", "]"
		if g.chance(50) {
			open, end = `{"a":`, "}"
		}
		return literal(strings.Repeat(open, levels) + inner + strings.Repeat(end, levels))
	})
}

func lengthen(g *generator, d *draft) bool {
	isList := func(v any) bool { list, ok := v.([]any); return ok && len(list) > 0 }
	return g.change(d, isList, func(at any) any {
		list := at.([]any)
		element := encode(list[0])
		n := min(pick(g.random, []int{2, 51, 101, 501, 5000}), 1+200_000/max(1, len(element)))
		return slices.Repeat(list[:1], n)
	})
}
