package expr_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/test/lane"
)

func TestCSV(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`parseCSV("")`:                                `[]`,
		`parseCSV("a,b")`:                             `[]`,
		`parseCSV("\ufeffa\r\n1\r\n")`:                `[{"a":"1"}]`,
		`parseCSV("a,b\n\n1,\"x\"\"y\nz\"\n")`:        `[{"a":"1","b":"x\"y\nz"}]`,
		`parseCSV("1,2\n3", {"header": false})`:       `[["1","2"],["3"]]`,
		`parseCSV("a\tb\n1\t2", {"delimiter": "\t"})`: `[{"a":"1","b":"2"}]`,
		`toCSV([{"a": nil}, {"a": "x"}])`:             `"a\n\"\"\nx\n"`,
		`parseCSV(toCSV([{"a": ""}, {"a": "x"}]))`:    `[{"a":""},{"a":"x"}]`,
		`toCSV([])`:  `""`,
		`toCSV(nil)`: `""`,
		`toCSV([{"b": [1], "a": "x\"y"}, {"c": 1.5}])`:       `"a,b,c\n\"x\"\"y\",[1],\n,,1.5\n"`,
		`toCSV([{"b": 1, "a": 2}], {"columns": ["b", "z"]})`: `"b,z\n1,\n"`,
		`toCSV([{"b": 1}], {"header": false})`:               `"1\n"`,
		`parseCSV(toCSV([{"a": "1", "b": ",\n\" x"}]))`:      `[{"a":"1","b":",\n\" x"}]`,
	})
	failTable(t, map[string]string{
		`parseCSV("a,b\n1")`:                 "line 2 of the CSV has another number of fields than the first row",
		`parseCSV("a\nx\"y")`:                "line 2 of the CSV has a quote in the wrong place",
		`parseCSV("a,a\n1,2")`:               "the first row of the CSV has a name twice; set the option header to false",
		`parseCSV("a", {"delimiter": "ab"})`: "argument 2 of parseCSV: delimiter must be one character, but neither a quote nor a line break",
		`parseCSV("a", {"delimiter": "\""})`: "argument 2 of parseCSV: delimiter must be one character, but neither a quote nor a line break",
		`parseCSV("a", {"header": "no"})`:    "argument 2 of parseCSV: header must be true or false, got string",
		`parseCSV("a", {"separator": ";"})`:  `argument 2 of parseCSV has an unknown option; use "header" or "delimiter"`,
		`toCSV([1])`:                         "argument 1 of toCSV must be a list of maps or of lists",
		`toCSV([], {"columns": [1]})`:        "argument 2 of toCSV: columns must be a list of strings",
	})
}

func TestToXML(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`toXML({"a": nil})`:                                      `"<a/>"`,
		`toXML({"a": ""})`:                                       `"<a/>"`,
		`toXML({"a": 1.5})`:                                      `"<a>1.5</a>"`,
		`toXML({"a": {"b": [], "c": [nil, true]}})`:              `"<a><c/><c>true</c></a>"`,
		`toXML({"a": {"@b": "\"<'&>\n", "#text": "]]>\n\r"}})`:   `"<a b=\"&quot;&lt;&#39;&amp;&gt;&#10;\">]]&gt;\n&#13;</a>"`,
		`toXML({"s:a": {"@xmlns:s": "urn:x", "s:b": "\u0001"}})`: `"<s:a xmlns:s=\"urn:x\"><s:b>�</s:b></s:a>"`,
		`escapeXML(nil) + escapeXML(12)`:                         `"12"`,
	})
	failTable(t, map[string]string{
		`toXML({})`:                   "argument 1 of toXML must have one key, the root element",
		`toXML({"a": 1, "b": 2})`:     "argument 1 of toXML must have one key, the root element",
		`toXML({"a": [1]})`:           "argument 1 of toXML must have one root element, not a list",
		`toXML({"a": {"b": [[1]]}})`:  "argument 1 of toXML has a list in a list",
		`toXML({"a b": 1})`:           "argument 1 of toXML has a key that is not a name in XML",
		`toXML({"a::b": 1})`:          "argument 1 of toXML has a key that is not a name in XML",
		`toXML({"a": {"@b=": 1}})`:    "argument 1 of toXML has a key that is not a name in XML",
		`toXML({"a": {"@b": [1]}})`:   "argument 1 of toXML has an attribute or a text that is array",
		`toXML({"a": {"#text": {}}})`: "argument 1 of toXML has an attribute or a text that is map",
		`toXML("a")`:                  "argument 1 of toXML must be a map, got string",
	})
}

// parseXML reads what toXML writes.
func TestXMLRoundTrip(t *testing.T) {
	t.Parallel()
	toAndFro, err := expr.Compile("parseXML(toXML(trigger.payload))")
	if err != nil {
		t.Fatal(err)
	}
	name := rapid.StringMatching(`([a-z]:)?[a-zé_][a-z0-9.-]{0,2}`)
	text := rapid.StringMatching(`[a-z<>&"'é]([ \t\r\n<>&;"'é\]a-z]{0,4}[a-z<>&"'é])?`)
	var element func(depth int) *rapid.Generator[any]
	element = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(rt *rapid.T) any {
			if depth == 0 || rapid.Bool().Draw(rt, "leaf") {
				return text.Draw(rt, "text")
			}
			out := map[string]any{"@" + name.Draw(rt, "attribute"): text.Draw(rt, "value")}
			if rapid.Bool().Draw(rt, "mixed") {
				out["#text"] = text.Draw(rt, "text")
			}
			for range rapid.IntRange(0, 2).Draw(rt, "elements") {
				items := rapid.SliceOfN(element(depth-1), 1, 3).Draw(rt, "items")
				if key := name.Draw(rt, "name"); len(items) == 1 {
					out[key] = items[0]
				} else {
					out[key] = items
				}
			}
			return out
		})
	}
	lane.Check(t, func(rt *rapid.T) {
		want := map[string]any{name.Draw(rt, "root"): element(3).Draw(rt, "element")}
		got, err := toAndFro.Eval(&expr.Env{Trigger: expr.Trigger{Payload: want}}, expr.Budget{})
		if err != nil {
			rt.Fatalf("%v: %v", want, err)
		}
		if diff := cmp.Diff(any(want), got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func TestXML(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`<?xml version="1.0" encoding="ISO-8859-1"?><a>ü</a>`: `{"a":"ü"}`,
		`<a/>`:                               `{"a":""}`,
		`<!DOCTYPE a [<!ENTITY b "c">]><a/>`: `{"a":""}`,
		`<!DOCTYPE cXML SYSTEM "http://xml.cxml.org/schemas/cXML/1.2.014/cXML.dtd"><cXML/>`: `{"cXML":""}`,
		` <!-- note --> <a> <b/> </a> `:                 `{"a":{"b":""}}`,
		`<a>x<b/>y</a>`:                                 `{"a":{"#text":"xy","b":""}}`,
		`<a><![CDATA[<&>]]>&#65;&lt;</a>`:               `{"a":"<&>A<"}`,
		`<s:a xmlns:s="urn:x" s:b="1"><s:c/><c/></s:a>`: `{"s:a":{"@s:b":"1","@xmlns:s":"urn:x","c":"","s:c":""}}`,
		`<a><b>1</b><b x="2"/><b><c/></b></a>`:          `{"a":{"b":["1",{"@x":"2"},{"c":""}]}}`,
	} {
		if got := eval(t, fmt.Sprintf("parseXML(%q)", text)); got != want {
			t.Errorf("%s = %s, want %s", text, got, want)
		}
	}
	if got := eval(t, fmt.Sprintf("len(parseXML(%q))", strings.Repeat("<a>", 100)+strings.Repeat("</a>", 100))); got != "1" {
		t.Errorf("100 levels: %s", got)
	}
	deep := strings.Repeat("<a>", 101) + strings.Repeat("</a>", 101)
	for text, want := range map[string]string{
		``:                 "the text is not valid XML at line 1",
		`text`:             "the text is not valid XML at line 1",
		"<a>\n<b></a></b>": "the text is not valid XML at line 2",
		`<a>`:              "the text is not valid XML at line 1",
		`<a/><b/>`:         "the text is not valid XML at line 1",
		`</a>`:             "the text is not valid XML at line 1",
		`<a b="1" b="2"/>`: "the text is not valid XML at line 1",
		`<a>&nbsp;</a>`:    "the text is not valid XML at line 1",
		`<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>`:                         "the text is not valid XML at line 1",
		`<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>`: "the text is not valid XML at line 1",
		deep: "the XML is nested too deeply",
	} {
		if e := mustFail(t, fmt.Sprintf("parseXML(%q)", text)); e.Code != expr.CodeFailed || e.Message != want {
			t.Errorf("%.60s: %s, want %s", text, e.Message, want)
		}
	}
}
