package expr_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/test/lane"
)

// found returns the attribute n of the elements that a selector matches.
func found(t *testing.T, source, selector string) string {
	t.Helper()
	p, err := expr.Compile(fmt.Sprintf("map(filter(htmlFindAll(trigger.payload, %q), .attributes.n != nil), .attributes.n)", selector))
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Eval(&expr.Env{Trigger: expr.Trigger{Payload: source}}, expr.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	return asJSON(t, v)
}

func TestHTMLSelectors(t *testing.T) {
	t.Parallel()
	const page = `<!DOCTYPE html><html><body>
		<div n=1 id="main" class="a b"><p n=2>x<p n=3 class="b">y<span n=4 data-x="one two"></span></div>
		<ul n=5><li n=6><li n=7 lang="de-CH"><li n=8 CLASS="a:b"></ul>
		<input n=9 disabled><a n=10 href="/files/report.pdf">z</a></body></html>`
	for selector, want := range map[string]string{
		"DIV":                          `["1"]`,
		"#main":                        `["1"]`,
		".b":                           `["1","3"]`,
		".a.b":                         `["1"]`,
		"p, .a , li":                   `["1","2","3","6","7","8"]`,
		"div p":                        `["2","3"]`,
		"div>p":                        `["2","3"]`,
		"div > span":                   `[]`,
		"body span":                    `["4"]`,
		"p + p":                        `["3"]`,
		"div ~ ul li + li":             `["7","8"]`,
		"li ~ li":                      `["7","8"]`,
		"[disabled]":                   `["9"]`,
		"[ href ]":                     `["10"]`,
		`[href$=".pdf"]`:               `["10"]`,
		`a[href^='/files/']`:           `["10"]`,
		"[href*=report]":               `["10"]`,
		"[data-x~=two]":                `["4"]`,
		"[data-x=one]":                 `[]`,
		"[lang|=de]":                   `["7"]`,
		`[data-x^=""]`:                 `[]`,
		`.a\:b`:                        `["8"]`,
		`[n="\31 0"]`:                  `["10"]`,
		"li:first-child":               `["6"]`,
		"li:last-child":                `["8"]`,
		"li:nth-child(2)":              `["7"]`,
		"li:nth-child(odd)":            `["6","8"]`,
		"li:nth-child(-n + 2)":         `["6","7"]`,
		"li:nth-last-child(2n+1)":      `["6","8"]`,
		"span:first-of-type":           `["4"]`,
		"body > :nth-of-type(1)":       `["1","5","9","10"]`,
		"li:not(.x):not([lang])":       `["6","8"]`,
		"li:not(:first-child, [lang])": `["8"]`,
		"*":                            `["1","2","3","4","5","6","7","8","9","10"]`,
	} {
		if got := found(t, page, selector); got != want {
			t.Errorf("%s matches %s, want %s", selector, got, want)
		}
	}
	const positions = "the selector uses a pseudo-class that is not supported; use :not and :first-child, :last-child, :nth-child, :nth-last-child and the same with -of-type"
	for selector, want := range map[string]string{
		"":                       "the selector is not valid: it ends too early",
		"a >":                    "the selector is not valid: it ends too early",
		"a,":                     "the selector is not valid: it ends too early",
		"> a":                    "the selector is not valid: it has a character in the wrong place",
		"a b)":                   "the selector is not valid: it has a character in the wrong place",
		"a)":                     "the selector is not valid: it has a character in the wrong place",
		".":                      "the selector is not valid: a name must follow .",
		"#1":                     "the selector is not valid: a name must follow #",
		"[=a]":                   "the selector is not valid: the name of an attribute must follow [",
		"[a":                     "the selector is not valid: = or ] must follow the name of an attribute",
		"[a=]":                   "the selector is not valid: a name or quoted text must follow =",
		"[a='b]":                 "the selector is not valid: a name or quoted text must follow =",
		"[a=b i]":                "the selector is not valid: ] is missing",
		":nth-child":             "the selector is not valid: :nth-child needs a position such as (2) or (2n+1)",
		":nth-child(2m)":         "the selector is not valid: :nth-child needs a position such as (2) or (2n+1)",
		":not(a b)":              "the selector is not valid: :not takes selectors without combinators",
		":not(:not(a))":          "the selector is not valid: :not cannot be nested",
		":has(a)":                positions,
		"a::before":              positions,
		"a:hover":                positions,
		strings.Repeat("a ", 33): "the selector has more than 32 parts",
		strings.Repeat("a", 513): "the selector is longer than 512 bytes",
	} {
		if e := mustFail(t, fmt.Sprintf("htmlFind('', %q)", selector)); e.Code != expr.CodeInvalid || e.Message != want {
			t.Errorf("%s: %s %s, want %s", selector, e.Code, e.Message, want)
		}
		if e := mustFail(t, fmt.Sprintf("htmlFind('', %q + '')", selector)); e.Code != expr.CodeFailed || e.Message != want {
			t.Errorf("computed %s: %s %s, want %s", selector, e.Code, e.Message, want)
		}
	}
}

func TestHTMLResults(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`htmlFind("<p>a", "b")`:                                                                           `null`,
		`htmlFindAll("", "b")`:                                                                            `[]`,
		`htmlFind("<p A=1 a=2 b>x", "p").attributes`:                                                      `{"a":"1","b":""}`,
		`htmlFind("<div><b>x</b> &amp; y</div>", "div").html`:                                             `"<b>x</b> &amp; y"`,
		`htmlFind("<ul><li>a<li>b</ul>", "li").html`:                                                      `"a"`,
		`htmlFind("<img src=a>b", "img").html`:                                                            `""`,
		`fromJSON(htmlFind("<script type=x>{\"a\": \"<b>\"}</script>", "script").html).a`:                 `"<b>"`,
		`htmlFind("<script>1</script>", "script").text`:                                                   `""`,
		`htmlFind("<title> A\n title </title>", "title").text`:                                            `"A title"`,
		`htmlFindAll("<p>1<p>2<p>3", "p", 2) | map(.text)`:                                                `["1","2"]`,
		`htmlFind("<svg><path/><g>x</g></svg>", "svg > g").text`:                                          `"x"`,
		`htmlFindAll("<table><tr><td>1<td>2<tr><td>3</table>", "table > tbody > tr") | map(.text)`:        `["1\t2","3"]`,
		`htmlFind("<select><option>a<option>b</select>", "option:last-child").text`:                       `"b"`,
		`htmlFind("<b><div>x</b>y</div>", "div").text`:                                                    `"xy"`,
		`htmlFind("<p>x</div>y", "p").text`:                                                               `"xy"`,
		`htmlText("<html><head><title>T</title></head><body>a<style>b</style>  <i>c</i>d</body></html>")`: `"a cd"`,
		`htmlText("a<br><br>b<div>c</div>d")`:                                                             `"a\nb\nc\nd"`,
		`htmlText("<pre>a\n  b</pre> <p>c")`:                                                              `"a\n  b\nc"`,
		`htmlText("1 < 2 &lt; 3 <!-- 4 --> &#x35;")`:                                                      `"1 < 2 < 3 5"`,
		`htmlText("")`: `""`,
		`htmlText("<table><tr><th>a</th> <th>b</th></tr><tr><td>1</td><td>2</td></tr></table>")`: `"a\tb\n1\t2"`,
	})
	failTable(t, map[string]string{
		`htmlFind(nil, "a")`:                     "argument 1 of htmlFind must be a string, got nil; use ?? to give a default",
		`htmlFind("", nil)`:                      "argument 2 of htmlFind must be a string, got nil; use ?? to give a default",
		`htmlText(join(map(1..513, "<b>"), ""))`: "the HTML is nested too deeply",
	})
}

// For well-formed documents, the matches are those of packages html and cascadia.
func TestHTMLLikeCascadia(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(rt *rapid.T) {
		b := &pageBuilder{rt: rt}
		b.blocks(3)
		page := "<!DOCTYPE html><html><head><title>t</title></head><body>" + b.String() + "</body></html>"
		selector := drawSelector(rt)
		root, err := html.Parse(strings.NewReader(page))
		if err != nil {
			rt.Fatal(err)
		}
		parsed, err := cascadia.ParseGroup(selector)
		if err != nil {
			rt.Fatalf("%s: %v", selector, err)
		}
		want := []string{}
		for _, node := range cascadia.QueryAll(root, parsed) {
			for _, a := range node.Attr {
				if a.Key == "n" {
					want = append(want, a.Val)
				}
			}
		}
		if got := found(t, page, selector); got != asJSON(t, want) {
			rt.Fatalf("%s in %s matches %s, want %s", selector, page, got, asJSON(t, want))
		}
	})
}

// pageBuilder writes a random document whose elements have a number.
type pageBuilder struct {
	strings.Builder
	rt *rapid.T
	n  int
}

func (b *pageBuilder) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(b.rt, label)
}

func (b *pageBuilder) element(tag, end string, content func()) {
	b.n++
	attributes := b.pick("attributes", "", ` class=a`, ` class="b a"`, ` id=x`, ` lang=en-US`, ` class=c lang="en"`)
	b.WriteString("<" + tag + " n=" + strconv.Itoa(b.n) + attributes + ">")
	content()
	b.WriteString(end)
}

func (b *pageBuilder) times(do func()) {
	for range rapid.IntRange(0, 3).Draw(b.rt, "times") {
		do()
	}
}

func (b *pageBuilder) inline(depth int) {
	b.times(func() {
		tag := b.pick("inline", "text", "span", "b", "em", "br", "img")
		switch {
		case tag == "br" || tag == "img":
			b.element(tag, b.pick("close", "", " "), func() {})
		case tag == "text" || depth == 0:
			b.WriteString("text")
		default:
			b.element(tag, "</"+tag+">", func() { b.inline(depth - 1) })
		}
	})
}

func (b *pageBuilder) blocks(depth int) {
	b.times(func() {
		inner := func() { b.inline(1) }
		if depth > 0 {
			inner = func() { b.blocks(depth - 1) }
		}
		switch tag := b.pick("block", "div", "section", "p", "ul", "dl", "table", "select", "h2"); tag {
		case "p", "h2":
			end := "</" + tag + ">"
			if tag == "p" {
				end = b.pick("end of p", end, "")
			}
			b.element(tag, end, func() { b.inline(2) })
			if end == "" {
				b.element("div", "</div>", inner)
			}
		case "ul":
			b.element(tag, "</ul>", func() {
				b.times(func() { b.element("li", b.pick("end of li", "</li>", ""), inner) })
			})
		case "dl":
			b.element(tag, "</dl>", func() {
				b.times(func() {
					b.element("dt", b.pick("end of dt", "</dt>", ""), func() { b.inline(1) })
					b.element("dd", b.pick("end of dd", "</dd>", ""), inner)
				})
			})
		case "select":
			b.element(tag, "</select>", func() {
				b.times(func() { b.element("option", b.pick("end of option", "</option>", ""), func() { b.WriteString("o") }) })
			})
		case "table":
			b.element(tag, "</table>", func() {
				b.times(func() {
					b.element("tr", b.pick("end of tr", "</tr>", ""), func() {
						b.times(func() { b.element(b.pick("cell", "td", "th"), b.pick("end of cell", "", ""), inner) })
					})
				})
			})
		default:
			b.element(tag, "</"+tag+">", inner)
		}
	})
}

func drawSelector(rt *rapid.T) string {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(rt, label) }
	var out strings.Builder
	for i := range rapid.IntRange(1, 4).Draw(rt, "compounds") {
		if i > 0 {
			out.WriteString(pick("combinator", " ", " ", " > ", " + ", " ~ ", ", "))
		}
		out.WriteString(pick("tag", "*", "div", "p", "li", "td", "tr", "span", "tbody", "ul", "dd", "option"))
		out.WriteString(pick("test", "", "", ".a", "#x", "[class~=b]", "[lang|=en]", ":first-child", ":last-child", ":nth-child(2n+1)",
			":nth-last-child(-n+2)", ":nth-of-type(2)", ":last-of-type", ":not(.a)", ":not([lang])", `[class$="a"]`))
	}
	return out.String()
}
