package expr_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/expr"
)

func TestFunctionExamples(t *testing.T) {
	t.Parallel()
	for _, f := range expr.Functions() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			if f.Doc == "" || f.Group == "" || len(f.Examples) == 0 || !strings.HasPrefix(f.Signature, f.Name+"(") {
				t.Errorf("incomplete: %+v", f)
			}
			for _, e := range f.Examples {
				if got := eval(t, e.Source); got != e.Result {
					t.Errorf("%s = %s, want %s", e.Source, got, e.Result)
				}
				if !strings.Contains(e.Source, f.Name+"(") {
					t.Errorf("%s does not call %s", e.Source, f.Name)
				}
			}
		})
	}
}

func TestFunctionNames(t *testing.T) {
	t.Parallel()
	want := strings.Fields(`
		upper lower trim trimPrefix trimSuffix split join replace slug hasPrefix hasSuffix indexOf lastIndexOf
		regexFind regexFindAll regexReplace
		abs ceil floor round min max mean int float formatNumber formatCurrency
		filter map reduce any all one none count sum find findIndex findLast groupBy sortBy
		sort reverse uniq concat flatten take first last
		len keys values toPairs fromPairs get
		type string toJSON fromJSON toBase64 fromBase64
		parseCSV toCSV parseXML toXML escapeXML htmlFind htmlFindAll htmlText
		urlEncode urlDecode parseURL buildURL addQuery
		hash hmac sha256 hmacSha256 jwtSign
		uuid random randomText
		now date parseDate formatDate addDuration
		addDays addMonths addYears startOf endOf dateDiff dateParts`)
	var got []string
	for _, f := range expr.Functions() {
		got = append(got, f.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTextFunctions(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`upper("straße")`:                    `"STRAßE"`,
		`trim("xyaxy", "yx")`:                `"a"`,
		`split("", ",")`:                     `[""]`,
		`split("", "")`:                      `[]`,
		`split("aüb", "")`:                   `["a","ü","b"]`,
		`split("abc", "", 2)`:                `["a","bc"]`,
		`split("a,b", ",", 1)`:               `["a,b"]`,
		`join([])`:                           `""`,
		`join([1, nil, true, [2]], ",")`:     `"1,,true,[2]"`,
		`replace("aaa", "aa", "b")`:          `"ba"`,
		`indexOf("abc", "")`:                 `0`,
		`lastIndexOf("abc", "")`:             `3`,
		`lastIndexOf("üaüa", "üa")`:          `2`,
		`slug("  --Ärger & Ölpreis_2026  ")`: `"arger-olpreis-2026"`,
		`slug("日本 語")`:                       `"日本-語"`,
		`slug("")`:                           `""`,
	})
}

func TestNumberAndListFunctions(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`abs(-9223372036854775807 - 1)`: `9223372036854776000`,
		`round(-2.5)`:                   `-3`,
		`round(2.675, 2)`:               `2.68`,
		`round(1e300, 2)`:               `1e+300`,
		`ceil(7)`:                       `7`,
		`floor(-0.5)`:                   `-1`,
		`min(nil)`:                      `null`,
		`max([1, 2.5], -1)`:             `2.5`,
		`mean([])`:                      `null`,
		`int(-3.9)`:                     `-3`,
		`int(" 7 ")`:                    `7`,
		`float(3)`:                      `3`,
		`count([])`:                     `0`,
		`all(nil, false)`:               `true`,
		`findIndex([1], # > 1)`:         `null`,
		`sort([])`:                      `[]`,
		`sort([2, 1.5, nil, -1])`:       `[-1,1.5,2,null]`,
		`sort([date("2026-02-01"), date("2026-01-01")])[0]`: `"2026-01-01T00:00:00.000Z"`,
		`reverse(nil)`:                `[]`,
		`take([1, 2], -1)`:            `[]`,
		`take([1, 2], 9)`:             `[1,2]`,
		`first(nil)`:                  `null`,
		`last([])`:                    `null`,
		`concat([1], nil, [])`:        `[1]`,
		`flatten(nil)`:                `[]`,
		`keys(nil)`:                   `[]`,
		`len(nil)`:                    `0`,
		`len({"a": 1})`:               `1`,
		`fromPairs([[1, 2], [1, 3]])`: `{"1":3}`,
		`get(nil, "a")`:               `null`,
		`get({"1": 2}, 1)`:            `2`,
	})
}

func TestEncodingAndTimeFunctions(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`type(nil) + type(true) + type([]) + type({}) + type(1)`: `"nilboolarraymapint"`,
		`string(nil)`:               `""`,
		`string("a")`:               `"a"`,
		`toJSON("<ü>\n")`:           `"\"<ü>\\n\""`,
		`fromJSON("1e2")`:           `100`,
		`fromBase64(toBase64("ü"))`: `"ü"`,
		`urlEncode(12)`:             `"12"`,
		`urlEncode("~a.b-c_d")`:     `"~a.b-c_d"`,
		`formatDate(0)`:             `"1970-01-01T00:00:00.000Z"`,
		`formatDate("2026-01-02T03:04:05.678Z", "YY M D H h m s SSS A MMM ddd Z [MM")`: `"26 1 2 3 3 4 5 678 AM Jan Fri Z [01"`,
		`formatDate("2026-01-02T03:04:05+05:00", "HH:mm [o'clock] Q")`:                 `"22:04 o'clock Q"`,
		`addDuration(0, "1w1d1h1m1s1ms")`:                                              `"1970-01-09T01:01:01.001Z"`,
		`addDuration(0, "0.5h")`:                                                       `"1970-01-01T00:30:00.000Z"`,
		`date("2026-01-02 03:04:05")`:                                                  `"2026-01-02T03:04:05.000Z"`,
		`date("2026-01-02T03:04")`:                                                     `"2026-01-02T03:04:00.000Z"`,
		`date("2026-01-02T03:04:05")`:                                                  `"2026-01-02T03:04:05.000Z"`,
		`date(now()) == now()`:                                                         `true`,
	})
}

func TestNowNeedsTheEnvironment(t *testing.T) {
	t.Parallel()
	p, err := expr.Compile(`now()`)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := p.Eval(&expr.Env{}, expr.Budget{}); err == nil {
		t.Errorf("now() = %v without a clock", v)
	}
}

var update = flag.Bool("update", false, "rewrite the lists of functions in the docs and the dashboard")

const (
	docsPath      = "../../docs/expressions.md"
	dashboardPath = "../../web/src/shared/workflow/expression/functions.ts"
)

func TestDocs(t *testing.T) {
	data, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	const marker = "go generate ./internal/expr -->\n"
	head, rest, ok := strings.Cut(string(data), marker)
	if !ok {
		t.Fatal("the marker is missing")
	}
	want := reference()
	if *update {
		if err := os.WriteFile(docsPath, []byte(head+marker+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, rest); diff != "" {
		t.Errorf("%s is out of date, run: go generate ./internal/expr\n%s", docsPath, diff)
	}
}

// reference returns the function reference for the docs.
func reference() string {
	var b strings.Builder
	group := ""
	for _, f := range expr.Functions() {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, "\n### %s\n\n| function | | example |\n|---|---|---|\n", group)
		}
		var examples []string
		for _, e := range f.Examples {
			examples = append(examples, "`"+e.Source+"` → `"+e.Result+"`")
		}
		row := "`" + f.Signature + "` | " + f.Doc + " | " + strings.Join(examples, "<br>")
		fmt.Fprintf(&b, "| %s |\n", row)
	}
	return b.String()
}

// The dashboard offers every function with its signature and its description.
func TestDashboard(t *testing.T) {
	var b strings.Builder
	b.WriteString("// Generated by `go generate ./internal/expr`. Do not edit.\n\n")
	b.WriteString("/** A function that expressions can call. */\nexport interface ExpressionFunction {\n")
	b.WriteString("\treadonly name: string;\n\treadonly signature: string;\n\treadonly doc: string;\n\treadonly inSteps?: true;\n}\n\n")
	b.WriteString("export const functions: readonly ExpressionFunction[] = [\n")
	for _, f := range expr.Functions() {
		fmt.Fprintf(&b, "\t{ name: %s, signature: %s, doc: %s", asJSON(t, f.Name), asJSON(t, f.Signature), asJSON(t, f.Doc))
		if f.InSteps {
			b.WriteString(", inSteps: true")
		}
		b.WriteString(" },\n")
	}
	b.WriteString("];\n")
	if *update {
		if err := os.WriteFile(dashboardPath, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(dashboardPath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(data)); diff != "" {
		t.Errorf("%s is out of date, run: go generate ./internal/expr, then make web\n%s", dashboardPath, diff)
	}
}

// The results in the other tables of the docs are correct too.
func TestDocsExamples(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := expr.FromJSON([]byte(`{"name": "Ada", "id": 42, "tags": ["a", "b"], "order": {"total": 9.5}}`))
	if err != nil {
		t.Fatal(err)
	}
	env := &expr.Env{
		Trigger: expr.Trigger{Payload: payload},
		Steps:   map[string]expr.Step{"get": {Output: map[string]any{"body": invoice()}, Status: "succeeded"}},
	}
	count := 0
	for _, table := range strings.Split(string(data), "| expression | result |\n|---|---|\n")[1:] {
		for row := range strings.SplitSeq(table, "\n") {
			cells := strings.Split(strings.ReplaceAll(row, `\|`, "\x00"), "|")
			if len(cells) != 4 {
				break
			}
			source := strings.ReplaceAll(strings.Trim(cells[1], " `"), "\x00", "|")
			p, err := expr.Compile(source)
			if err != nil {
				t.Error(err)
				continue
			}
			v, err := p.Eval(env, expr.Budget{})
			if want := strings.Trim(cells[2], " `"); err != nil || asJSON(t, v) != want {
				t.Errorf("%s = %s, %v, want %s", source, asJSON(t, v), err, want)
			}
			count++
		}
	}
	if count < 20 {
		t.Errorf("only %d examples found", count)
	}
}
