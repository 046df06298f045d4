package expr_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/expr"
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
