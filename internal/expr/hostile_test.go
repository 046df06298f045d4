package expr_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/expr"
)

// hostileEnv has a payload of about 1 MiB.
func hostileEnv() *expr.Env {
	items := make([]any, 10_000)
	for i := range items {
		items[i] = map[string]any{"id": i, "name": fmt.Sprintf("name-%d", i), "at": "2026-11-15T09:30:00Z"}
	}
	return &expr.Env{
		Trigger: expr.Trigger{Payload: map[string]any{
			"items": items,
			"a":     strings.Repeat("a", 1<<20),
			"wide":  strings.Repeat("aé", 1<<18),
			"text":  strings.Repeat("word ", 1<<16),
		}},
		Now:  time.Unix(1_700_000_000, 0),
		Seed: []byte("hostile"),
	}
}

const nest = `let a = [1,1,1,1,1,1,1,1]; let b = [a,a,a,a,a,a,a,a]; let c = [b,b,b,b,b,b,b,b]; let d = [c,c,c,c,c,c,c,c];
	let e = [d,d,d,d,d,d,d,d]; let f = [e,e,e,e,e,e,e,e]; let g = [f,f,f,f,f,f,f,f]; let h = [g,g,g,g,g,g,g,g]; `

// costTable checks that every expression exceeds its budget. Without a budget they
// would take hours.
func costTable(t *testing.T, sources []string) {
	t.Helper()
	env := hostileEnv()
	for _, source := range sources {
		t.Run(source[max(0, len(source)-60):], func(t *testing.T) {
			t.Parallel()
			p, err := expr.Compile(source)
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Eval(env, expr.Budget{})
			var e *expr.Error
			if !errors.As(err, &e) || e.Code != expr.CodeCost {
				t.Errorf("%.80s: %v, want %s", source, err, expr.CodeCost)
			}
		})
	}
}

// Nested loops, and every function inside a loop.
func TestTimeIsBounded(t *testing.T) {
	t.Parallel()
	costTable(t, []string{
		`map(trigger.payload.items, map(trigger.payload.items, .id))`,
		`count(trigger.payload.items, any(trigger.payload.items, .id == -1))`,
		`all(1..100000, all(1..100000, all(1..100000, # > 0)))`,
		`sum(1..100000, sum(1..100000))`,
		`sortBy(trigger.payload.items, count(trigger.payload.items, .id > 0))`,
		`reduce(1..100000, #acc + reduce(1..1000, #acc + #, 0), 0)`,
		`all(1..100000, len(toJSON(trigger.payload.items)) > 0)`,
		`all(1..100000, trigger.payload.items == trigger.payload.items)`,
		`all(1..100000, -1 not in map(trigger.payload.items, .id))`,
		`all(1..100000, len(trigger.payload.wide) > 0)`,
		`all(1..100000, trigger.payload.wide[1:-1] != "")`,
		`all(1..100000, trigger.payload.a != trigger.payload.a[:-1] + "b")`,
		`all(1..100000, trigger.payload.a contains "b" == false)`,
		`all(1..100000, indexOf(trigger.payload.a, trigger.payload.a[:1000] + "b") < 0)`,
		`all(1..100000, lastIndexOf(trigger.payload.a, "b" + trigger.payload.a[:1000]) < 0)`,
		`all(1..100000, len(split(trigger.payload.a, trigger.payload.a[:100] + "b")) == 1)`,
		`all(1..100000, trim(trigger.payload.wide, "aéxyz") == "")`,
		`trim(trigger.payload.wide, join(map(1..80, "üöä"), "")[:250])`,
		`len(sort(map(1..1000, trigger.payload.a[#:])))`,
		`all(1..100000, len(uniq(trigger.payload.items)) > 0)`,
		`all(1..100000, all(1..100, formatDate(#, "dddd, D MMMM YYYY HH:mm:ss") != ""))`,
		`all(1..100000, all(1..100, date(trigger.payload.items[#].at) != nil))`,
		`all(1..100000, all(1..100, uuid() != ""))`,
		`all(1..100000, len(parseCSV(trigger.payload.text)) == 0)`,
		`all(1..100000, parseXML("<a>" + trigger.payload.text + "</a>") != nil)`,
		`all(1..100000, all(1..100, parseXML("<a b='c'/>") != nil))`,
		`all(1..100000, all(1..100, toCSV([[#]]) != ""))`,
		`all(1..100000, all(1..100, htmlFind("<b>", "b") != nil))`,
		`all(1..100000, htmlText(trigger.payload.text) != "")`,
		`all(1..100, htmlFind("<p>" + join(map(1..500, "<i>"), "") + join(map(1..5000, "</p>"), ""), "b") == nil)`,
		`all(1..100000, len(htmlFindAll("<div class='" + trigger.payload.text + "'>", ".a,.b,.c,.d,.e,.f,.g,.h")) == 0)`,
		`all(1..100000, escapeXML(trigger.payload.text) != "")`,
		`all(1..100000, all(1..100, toXML({"a": #}) != ""))`,
		`all(1..100000, all(1..100, jwtSign({}, "key") != ""))`,
		`all(1..100000, jwtSign({}, trigger.payload.a) != "")`,
		`all(1..100000, all(1..100, parseURL("https://a.example/?b=c").host != ""))`,
		`all(1..100000, len(parseURL("?" + trigger.payload.wide).query) == 1)`,
		`all(1..100000, urlDecode(trigger.payload.wide) != "")`,
		`all(1..100000, all(1..100, random(0, #) >= 0))`,
		`all(1..100000, randomText(1000) != "")`,
		`all(1..100000, all(1..100, date("2026-11-15", "Europe/Berlin") != nil))`,
		`all(1..100000, all(1..100, parseDate("5 Nov 2026", "D MMM YYYY", "Asia/Tokyo") != nil))`,
		`all(1..100000, all(1..100, addMonths(now(), #, "Pacific/Apia") != nil))`,
		`all(1..100000, all(1..100, endOf(#, "quarter", "America/New_York") != nil))`,
		`all(1..100000, all(1..100, dateDiff(0, #, "month", "Europe/Berlin") == 0))`,
		`all(1..100000, all(1..100, dateParts(#).day == 1))`,
		`all(1..100000, all(1..100, sha256(string(#)) != ""))`,
		`all(1..100000, sha256(trigger.payload.a) != "")`,
		`all(1..100000, hash(trigger.payload.a, "md5") != "")`,
		`all(1..100000, all(1..100, hash("", "sha512", "base64") != ""))`,
		`all(1..100000, hmac(trigger.payload.a, "", "sha1") != "")`,
		`all(1..100000, hmac("", trigger.payload.a, "sha512") != "")`,
		`all(1..100000, all(1..100, float("1.2345678901234567e-300") > 0))`,
		`all(1..100000, all(1..100, formatNumber(# * 1e300, "fa") != ""))`,
		`all(1..100000, all(1..100, formatCurrency(#, "EUR", "de") != ""))`,
		`all(1..100000, get({}, trigger.payload.a) == nil)`,
		`all(1..100000, slug(trigger.payload.wide) != "")`,
		`trigger.payload.a matches "(a|b|ab)*c"`,
		`regexFind(trigger.payload.a, "(a|b|ab)*c")`,
		`regexFindAll(trigger.payload.a, "a.*b|a")`,
		`regexReplace(trigger.payload.a, "a[^b]*b|a", "x")`,
		`regexFindAll(trigger.payload.a, "")`,
		`all(1..100000, len(regexFindAll("aaaaaaaaaaaaaaaa", "(a)(b)?|(.)")) > 0)`,
		`all(trigger.payload.items, regexFind(.name, "^name-" + string(#index)) != nil)`,
		`all(trigger.payload.items, .name matches ("^name-" + string(#index)))`,
		`all(1..100000, all(1..100, "aaaaaaaaaaaaaaaaaaaaaaaa" matches "(a*)*b" == false))`,
	})
}

// Everything that allocates memory.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	costTable(t, []string{
		`reduce(1..100000, #acc + #acc, "xx")`,
		`reduce(1..100000, #acc + "0123456789abcdef", "")`,
		`reduce(1..100000, concat(#acc, #acc), [1])`,
		`reduce(1..100000, concat(#acc, [#]), [])`,
		`reduce(1..100000, [#acc, #acc], 0)`,
		`reduce(1..50000, [#acc], 0)`,
		`reduce(1..100000, join([#acc, #acc], ","), "x")`,
		`reduce(1..100000, replace(#acc, "x", "xx"), "x")`,
		`reduce(1..100000, toJSON([#acc, #acc]), "x")`,
		`reduce(1..100000, toBase64(#acc), "x")`,
		`reduce(1..100000, urlEncode(#acc), "%")`,
		`reduce(1..100000, string([#acc]), "\"")`,
		`replace(trigger.payload.a, "a", trigger.payload.text)`,
		`join(map(1..100000, trigger.payload.text), "")`,
		`join(1..1000, trigger.payload.a)`,
		`split(trigger.payload.a, "")`,
		`split(trigger.payload.a, "a")`,
		`map(1..100000, upper(trigger.payload.text))`,
		`map(1..100000, map(1..100000, #))`,
		`map(1..100000, {"a": #, "b": [#]})`,
		`map(1..100000, keys(trigger.payload.items[0]))`,
		`map(1..100000, toPairs(trigger.payload.items[0]))`,
		`map(1..100000, trigger)`,
		`map(1..100000, steps)`,
		`groupBy(1..100000, #)`,
		`fromPairs(map(1..100000, [string(#), #]))`,
		`fromJSON("[" + join(map(1..100000, "[]"), ",") + "]")`,
		`fromJSON("[" + join(map(1..50000, "{}"), ",") + "]")`,
		`map(1..100000, uuid())`,
		`parseCSV(join(map(1..100000, ","), "\n"), {"header": false})`,
		`parseCSV(join(1..1000, ",") + "\n" + join(map(1..50, join(1..1000, ",")), "\n"))`,
		`parseCSV(replace(trigger.payload.a, "a", ","), {"header": false})`,
		`parseXML("<a>" + join(map(1..50000, "<b/>"), "") + "</a>")`,
		`parseXML("<a " + join(map(1..50000, "b" + string(#) + "=''"), " ") + "/>")`,
		`parseXML("<a>" + join(map(1..20000, "<b><c/></b>"), "") + "</a>")`,
		`toXML({"a": {"b": map(1..100, trigger.payload.text)}})`,
		`reduce(1..100, escapeXML(#acc + #acc), "&")`,
		`htmlFindAll(replace(trigger.payload.text, "word ", "<br>"), "br")`,
		`htmlFindAll("<a " + join(map(1..50000, "b" + string(#)), " ") + ">", "a")`,
		`reduce(1..100000, htmlText(#acc), trigger.payload.text)`,
		`toCSV(map(1..100, [trigger.payload.text]))`,
		`toCSV(map(1..1000, fromPairs([[string(#), 1]])))`,
		`jwtSign({"a": trigger.payload.a, "b": trigger.payload.a}, "key")`,
		`parseURL("?" + join(map(1..100000, "a="), "&"))`,
		`parseURL("?" + join(map(1..50000, string(#)), "&"))`,
		`reduce(1..100000, addQuery(#acc, {"a": #acc}), "/")`,
		`buildURL({"host": "a.example", "query": {"a": map(1..100000, trigger.payload.text)}})`,
		`buildURL({"path": trigger.payload.a})`,
		`regexReplace(trigger.payload.a, "a", trigger.payload.text)`,
		`regexReplace("a", "(a)", trigger.payload.text + join(map(1..50000, "$1"), ""))`,
		`regexReplace("a", "a", replace(trigger.payload.text, "word ", "${0}word"))`,
		`reduce(1..100, regexReplace(#acc, "x+", "$0$0"), "x")`,
		`regexFindAll(trigger.payload.text, "w")`,
		`1..100001`,
		`-9223372036854775807..9223372036854775807`,
	})
}

// Values with shared parts need little memory, but much time to traverse.
func TestSharingIsBounded(t *testing.T) {
	t.Parallel()
	costTable(t, []string{
		nest + `h`,
		nest + `toJSON(h)`,
		nest + `"text: " + string(h)`,
		nest + `flatten(h)`,
		`let a = {"x": [1,1,1,1,1,1,1,1]}; let b = {"x": [a,a,a,a,a,a,a,a]}; let c = {"x": [b,b,b,b,b,b,b,b]}; let d = {"x": [c,c,c,c,c,c,c,c]}; let e = {"x": [d,d,d,d,d,d,d,d]}; let f = {"x": [e,e,e,e,e,e,e,e]}; let g = {"x": [f,f,f,f,f,f,f,f]}; let h = {"x": [g,g,g,g,g,g,g,g]}; toXML({"r": h})`,
		nest + `toCSV([h])`,
		nest + `h == [h[1],h[2],h[3],h[4],h[5],h[6],h[7],h[0]]`,
		nest + `uniq([h, h])`,
		nest + `[h] in [[h, 1], [h]] || uniq([h]) == nil`,
		`[trigger.payload.a, trigger.payload.a]`,
	})
}

// Typical expressions on large payloads stay within the budget.
func TestLargePayloadsWork(t *testing.T) {
	t.Parallel()
	env := hostileEnv()
	for source, want := range map[string]any{
		`len(filter(trigger.payload.items, .id % 2 == 0 && .name startsWith "name-1"))`:                                                  555,
		`len(map(trigger.payload.items, {id: .id, label: .name + "!"}))`:                                                                 10_000,
		`len(htmlFindAll("<table>" + join(map(1..2000, "<tr><td class=a>1</td><td><b>2</b></td></tr>"), "") + "</table>", "tr > td.a"))`: 2000,
		`sum(trigger.payload.items, .id)`:                                                   49_995_000,
		`len(sortBy(trigger.payload.items, .name, "desc"))`:                                 10_000,
		`len(groupBy(trigger.payload.items, .id % 10))`:                                     10,
		`len(toJSON(trigger.payload.items)) > 100000`:                                       true,
		`len(fromJSON(toJSON(take(trigger.payload.items, 5000))))`:                          5000,
		`len(split(trigger.payload.text, " "))`:                                             65_537,
		`len(replace(trigger.payload.text, " ", "--"))`:                                     393_216,
		`len(uniq(map(trigger.payload.items, .name)))`:                                      10_000,
		`len(filter(take(trigger.payload.items, 1000), .name matches "^name-[0-9]{1,2}$"))`: 100,
		`len(regexReplace(trigger.payload.text[:20000], "w(or)d", "$1"))`:                   12_000,
		`len(sha256(trigger.payload.a))`:                                                    64,
	} {
		p, err := expr.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Eval(env, expr.Budget{})
		if err != nil || got != want {
			t.Errorf("%s = %v, %v, want %v", source, got, err, want)
		}
	}
}
