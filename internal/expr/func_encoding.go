package expr

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

func encodingFunctions() []function {
	return []function{
		fn("type", "type(value) string", `The type of a value: "nil", "bool", "int", "float", "string", "array", "map", "time" or "file".`, 1, 1, typeOf,
			`type("a")`, `"string"`, `type(1.5)`, `"float"`),
		fn("string", "string(value) string", "The value as text, as in a template.", 1, 1, toString,
			`string(42)`, `"42"`, `string([1, "a"])`, `"[1,\"a\"]"`),
		fn("toJSON", "toJSON(value) string", "The value as compact JSON.", 1, 1, toJSON,
			`toJSON({"a": [1, nil]})`, `"{\"a\":[1,null]}"`),
		fn("fromJSON", "fromJSON(text) any", "The value of JSON text.", 1, 1, fromJSON,
			`fromJSON("[1, true]")`, `[1,true]`),
		fn("toBase64", "toBase64(text) string", "The text in base64.", 1, 1, toBase64,
			`toBase64("hello")`, `"aGVsbG8="`),
		fn("fromBase64", "fromBase64(text) string", "The decoded text of base64, standard or URL-safe, with or without padding.", 1, 1, fromBase64,
			`fromBase64("aGVsbG8=")`, `"hello"`),
	}
}

func typeOf(_ *evaluation, a args) (any, error) { return kind(a.values[0]), nil }

func toString(m *evaluation, a args) (any, error) { return boxed(m.text(a.values[0])) }

func toJSON(m *evaluation, a args) (any, error) {
	out, err := m.appendJSON(nil, a.values[0], 0)
	return string(out), err
}

func fromJSON(m *evaluation, a args) (any, error) {
	s, err := a.text(0)
	if err != nil {
		return nil, err
	}
	return m.decode(s)
}

func toBase64(m *evaluation, a args) (any, error) {
	s, err := a.text(0)
	if err != nil {
		return nil, err
	}
	if err := m.growText(2 * base64.StdEncoding.EncodedLen(len(s))); err != nil {
		return nil, err
	}
	return base64.StdEncoding.EncodeToString([]byte(s)), nil
}

func fromBase64(m *evaluation, a args) (any, error) {
	s, err := a.text(0)
	if err != nil {
		return nil, err
	}
	if err := m.growText(2 * len(s)); err != nil {
		return nil, err
	}
	if err := m.spend(len(s) / 8); err != nil {
		return nil, err
	}
	out, err := decodeBase64(s)
	if err != nil {
		return nil, failf("the string is not base64")
	}
	if !utf8.Valid(out) {
		return nil, failf("the decoded bytes are not UTF-8 text")
	}
	return string(out), nil
}

// decodeBase64 decodes base64, standard or URL-safe, with or without padding.
func decodeBase64(s string) ([]byte, error) {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	return base64.RawStdEncoding.DecodeString(s)
}
