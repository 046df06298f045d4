package strictjson_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// problems returns err as Errors, nil if err is nil.
func problems(t *testing.T, err error) strictjson.Errors {
	t.Helper()
	if err == nil {
		return nil
	}
	var errs strictjson.Errors
	if !errors.As(err, &errs) || len(errs) == 0 {
		t.Fatalf("error %v (%T), want Errors", err, err)
	}
	return errs
}

func syntaxError(pointer, message string, line, column int) strictjson.Errors {
	return strictjson.Errors{{
		Kind: strictjson.Syntax, Pointer: pointer, Message: message, Line: line, Column: column,
	}}
}

type syntaxTest struct {
	name, in, pointer, message string
	line, column               int
}

func (test syntaxTest) run(t *testing.T) {
	t.Parallel()
	want := syntaxError(test.pointer, test.message, test.line, test.column)
	if diff := cmp.Diff(want, problems(t, strictjson.Check([]byte(test.in)))); diff != "" {
		t.Errorf("Check(%q) (-want +got):\n%s", test.in, diff)
	}
	_, err := strictjson.DecodeAny([]byte(test.in))
	if diff := cmp.Diff(want, problems(t, err)); diff != "" {
		t.Errorf("DecodeAny(%q) (-want +got):\n%s", test.in, diff)
	}
}

func TestSyntaxWholeInput(t *testing.T) {
	t.Parallel()
	for _, test := range []syntaxTest{
		{"empty", "", "", "the body is empty", 1, 1},
		{"only space", " \n\t", "", "the body is empty", 2, 2},
		{"byte order mark", "\uFEFF{}", "", "the input starts with a byte order mark", 1, 1},
		{"UTF-16", "{\x00}\x00", "", `unexpected character '\x00', expected a key in double quotes`, 1, 2},
	} {
		t.Run(test.name, test.run)
	}
}

func TestSyntaxEnd(t *testing.T) {
	t.Parallel()
	const end = "unexpected end of input"
	for _, test := range []syntaxTest{
		{"open object", `{`, "", end, 1, 2},
		{"open array", `[1`, "", end, 1, 3},
		{"after comma", `[1,`, "/1", end, 1, 4},
		{"after key", `{"a"`, "/a", end, 1, 5},
		{"after colon", `{"a":`, "/a", end, 1, 6},
		{"open string", `{"a":"b`, "/a", end, 1, 8},
		{"open key", `{"a`, "", end, 1, 4},
		{"open escape", `["\`, "/0", end, 1, 4},
		{"open literal", `[tru`, "/0", end, 1, 5},
		{"open number", `[-`, "/0", end, 1, 3},
		{"open fraction", `1.`, "", end, 1, 3},
		{"open exponent", `1e+`, "", end, 1, 4},
	} {
		t.Run(test.name, test.run)
	}
}

func TestSyntaxStructure(t *testing.T) {
	t.Parallel()
	for _, test := range []syntaxTest{
		{"trailing data", `{} {}`, "", "unexpected data after the value", 1, 4},
		{"trailing brace", `{}}`, "", "unexpected data after the value", 1, 3},
		{"trailing NUL", "1\x00", "", "unexpected data after the value", 1, 2},
		{"trailing comma in object", `{"a":1,}`, "", "trailing comma before }", 1, 7},
		{"trailing comma in array", "[[1,\n ]]", "/0", "trailing comma before ]", 1, 4},
		{"only comma", `[,]`, "/0", "unexpected character ',', expected a value", 1, 2},
		{"two commas", `[1,,2]`, "/1", "unexpected character ',', expected a value", 1, 4},
		{"no comma", `{"a":1 "b":2}`, "", `unexpected character '"', expected a comma or }`, 1, 8},
		{"no colon", `{"a" 1}`, "/a", "unexpected character '1', expected a colon after the key", 1, 6},
		{"wrong closer", `{"a":[1}}`, "/a", "unexpected character '}', expected a comma or ]", 1, 8},
		{"bare key", `{name:1}`, "", "unexpected name, expected a key in double quotes", 1, 2},
		{"number as key", `{1:1}`, "", "unexpected character '1', expected a key in double quotes", 1, 2},
		{"single quotes", `{"a":'b'}`, "/a", "strings must be in double quotes", 1, 6},
		{"line comment", "{\n  // why\n}", "", "comments are not allowed", 2, 3},
		{"block comment", `[1 /* why */]`, "", "comments are not allowed", 1, 4},
	} {
		t.Run(test.name, test.run)
	}
}

func TestSyntaxScalars(t *testing.T) {
	t.Parallel()
	for _, test := range []syntaxTest{
		{"NaN", `{"a":NaN}`, "/a", "unexpected NaN, expected a value", 1, 6},
		{"Infinity", `Infinity`, "", "unexpected Infinity, expected a value", 1, 1},
		{"-Infinity", `-Infinity`, "", "number needs a digit after the minus sign", 1, 2},
		{"undefined", `[undefined]`, "/0", "unexpected undefined, expected a value", 1, 2},
		{"True", `True`, "", "unexpected True, expected a value", 1, 1},
		{"nul", `[nul]`, "/0", "unexpected nul, expected a value", 1, 2},
		{"long literal", `[truex]`, "", "unexpected character 'x', expected a comma or ]", 1, 6},
		{"leading zero", `[007]`, "/0", "number has a leading zero", 1, 2},
		{"negative leading zero", `-01`, "", "number has a leading zero", 1, 2},
		{"plus", `+1`, "", "unexpected character '+', expected a value", 1, 1},
		{"no integer part", `.5`, "", "unexpected character '.', expected a value", 1, 1},
		{"no fraction", `[1.]`, "/0", "number needs a digit after the decimal point", 1, 4},
		{"no exponent", `[1e]`, "/0", "number needs a digit in the exponent", 1, 4},
		{"hexadecimal", `[0x10]`, "", "unexpected character 'x', expected a comma or ]", 1, 3},
	} {
		t.Run(test.name, test.run)
	}
}

func TestSyntaxText(t *testing.T) {
	t.Parallel()
	const badEscape = "invalid escape in a string: a backslash must be followed by one of \"\\/bfnrtu"
	const badUnicode = "invalid escape in a string: \\u must be followed by four hexadecimal digits"
	for _, test := range []syntaxTest{
		{"newline in string", "[\"a\nb\"]", "/0", "control character U+000A in a string must be escaped", 1, 4},
		{"NUL in string", "[\"a\x00\"]", "/0", "control character U+0000 in a string must be escaped", 1, 4},
		{"tab in key", "{\"a\tb\":1}", "", "control character U+0009 in a string must be escaped", 1, 4},
		{"unknown escape", `["a\x41"]`, "/0", badEscape, 1, 4},
		{"short \\u", `["\u12"]`, "/0", badUnicode, 1, 3},
		{"signed \\u", `["\u+123"]`, "/0", badUnicode, 1, 3},
		{"lone high surrogate", `["\ud800"]`, "/0", `\ud800 is half of a surrogate pair`, 1, 3},
		{"lone low surrogate", `["\uDC00"]`, "/0", `\udc00 is half of a surrogate pair`, 1, 3},
		{"two high surrogates", `["\ud83d\ud83d"]`, "/0", `\ud83d is half of a surrogate pair`, 1, 3},
		{"high surrogate and text", `["\ud83dabcdef"]`, "/0", `\ud83d is half of a surrogate pair`, 1, 3},
		{"lone surrogate in key", `{"\ud800":1}`, "", `\ud800 is half of a surrogate pair`, 1, 3},
		{"invalid UTF-8", "{\"ä\":\"b\xff\"}", "/ä", "invalid UTF-8", 1, 8},
		{"overlong UTF-8", "[\"\xc0\xaf\"]", "/0", "invalid UTF-8", 1, 3},
		{"surrogate in UTF-8", "[\"\xed\xa0\x80\"]", "/0", "invalid UTF-8", 1, 3},
		{"cut UTF-8", "[\"\xe2\x82\"]", "/0", "invalid UTF-8", 1, 3},
		{"invalid UTF-8 in key", "{\"\xff\":1}", "", "invalid UTF-8", 1, 3},
		{"invalid UTF-8 between values", "[1\xff]", "", "invalid UTF-8", 1, 3},
		{"UTF-8 between values", "[1\u00a0]", "", `unexpected character '\u00a0', expected a comma or ]`, 1, 3},
	} {
		t.Run(test.name, test.run)
	}
}

func TestSyntaxDuplicates(t *testing.T) {
	t.Parallel()
	for _, test := range []syntaxTest{
		{"duplicate key", `{"name":1,"name":2}`, "/name", `duplicate key "name"`, 1, 11},
		{"duplicate after escape", `{"name":1,"\u006eame":2}`, "/name", `duplicate key "name"`, 1, 11},
		{"duplicate escapes", `{"\u00e4":1,"ä":2}`, "/ä", `duplicate key "ä"`, 1, 13},
		{"duplicate below", `{"a":[{},{"b~/":{"c":1,"c":1}}]}`, "/a/1/b~0~1/c", `duplicate key "c"`, 1, 24},
		{"duplicate empty key", `{"":1,"":1}`, "/", `duplicate key ""`, 1, 7},
	} {
		t.Run(test.name, test.run)
	}
}

func TestSyntaxHidesShape(t *testing.T) {
	t.Parallel()
	var dst struct {
		A string `json:"a"`
		B string `json:"b"`
	}
	err := strictjson.Decode([]byte(`{"a":1,"c":2,"b":}`), &dst)
	want := syntaxError("/b", "unexpected character '}', expected a value", 1, 18)
	if diff := cmp.Diff(want, problems(t, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDuplicateInStruct(t *testing.T) {
	t.Parallel()
	var dst struct {
		State string `json:"state"`
	}
	tests := []struct {
		in, pointer, message string
		column               int
	}{
		{`{"state":"a","state":"b"}`, "/state", `duplicate key "state"`, 14},
		{`{"state":"a","st\u0061te":"b"}`, "/state", `duplicate key "state"`, 14},
		{`{"other":"a","other":"b"}`, "/other", `duplicate key "other"`, 14},
	}
	for _, test := range tests {
		want := syntaxError(test.pointer, test.message, 1, test.column)
		if diff := cmp.Diff(want, problems(t, strictjson.Decode([]byte(test.in), &dst))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.in, diff)
		}
	}
}

func TestWellFormed(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		`0`, `-0`, `-0.0`, `1e5`, `1E-5`, `1.25e+10`, `1e-400`, `true`, `false`, `null`, `""`,
		" \t\r\n[ ] \n", `{}`, `{"":0}`, `[[],{}]`, `{"a":{"a":{"a":1}},"b":{"a":1}}`,
		`"\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00\uD83D\uDE00"`, "\"äöü€😀\u007f\uFEFF\"",
		`{"a":1,"A":2}`, `[` + strings.Repeat(`{"x":1},`, 100) + `{"x":1}]`,
	} {
		if err := strictjson.Check([]byte(in)); err != nil {
			t.Errorf("Check(%q) = %v", in, err)
		}
		if _, err := strictjson.DecodeAny([]byte(in)); err != nil {
			t.Errorf("DecodeAny(%q) = %v", in, err)
		}
	}
}
