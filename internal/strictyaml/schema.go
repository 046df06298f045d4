package strictyaml

import (
	"bytes"
	"fmt"
	"math/big"
)

type kind int

const (
	kindText      kind = iota
	kindWord           // null, true or false
	kindDecimal        // with or without a fraction and an exponent
	kindPrefixed       // octal or hexadecimal
	kindNonFinite      // infinite or not a number
)

// resolve returns the type of a plain scalar under the core schema of YAML 1.2,
// and for a word its form in JSON.
func resolve(text []byte) (kind, string) {
	switch string(text) {
	case "", "~", "null", "Null", "NULL":
		return kindWord, "null"
	case "true", "True", "TRUE":
		return kindWord, "true"
	case "false", "False", "FALSE":
		return kindWord, "false"
	case ".nan", ".NaN", ".NAN":
		return kindNonFinite, ""
	}
	unsigned := text
	if text[0] == '-' || text[0] == '+' {
		unsigned = text[1:]
	}
	switch string(unsigned) {
	case ".inf", ".Inf", ".INF":
		return kindNonFinite, ""
	}
	if isDecimal(unsigned) {
		return kindDecimal, ""
	}
	if len(text) > 2 && text[0] == '0' && (text[1] == 'o' && consistsOf(text[2:], "01234567") || text[1] == 'x' && consistsOf(text[2:], "0123456789abcdefABCDEF")) {
		return kindPrefixed, ""
	}
	return kindText, ""
}

// isDecimal reports whether text is digits with an optional fraction and
// exponent. There must be a digit before or after the point.
func isDecimal(text []byte) bool {
	whole := digits(text)
	rest := text[whole:]
	if len(rest) > 0 && rest[0] == '.' {
		fraction := digits(rest[1:])
		if whole+fraction == 0 {
			return false
		}
		rest = rest[1+fraction:]
	} else if whole == 0 {
		return false
	}
	if len(rest) > 0 && (rest[0] == 'e' || rest[0] == 'E') {
		rest = rest[1:]
		if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
			rest = rest[1:]
		}
		n := digits(rest)
		return n > 0 && n == len(rest)
	}
	return len(rest) == 0
}

func digits(text []byte) int {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}

func consistsOf(text []byte, set string) bool { return len(bytes.Trim(text, set)) == 0 }

func (p *parser) scalar(at int, text []byte) bool {
	kind, word := resolve(text)
	switch {
	case kind == kindText:
		return p.text(at, text)
	case kind == kindNonFinite:
		return p.syntax(at, fmt.Sprintf("%s is no number that can be stored", text))
	case len(text) > maxNumberBytes:
		return p.abort(at, fmt.Sprintf("number is too long (more than %d characters)", maxNumberBytes))
	}
	if _, ok := p.value(at); !ok {
		return false
	}
	switch kind {
	case kindWord:
		p.out = append(p.out, word...)
	case kindPrefixed:
		n := new(big.Int)
		n.SetString(string(text), 0) // Go has the same prefixes
		p.out = n.Append(p.out, 10)
	default:
		p.out = appendDecimal(p.out, text)
	}
	return true
}

// appendDecimal appends a number in JSON notation: without a plus sign or leading
// zeros, and with digits on both sides of the point.
func appendDecimal(out, text []byte) []byte {
	switch text[0] {
	case '-':
		out = append(out, '-')
		text = text[1:]
	case '+':
		text = text[1:]
	}
	for len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9' {
		text = text[1:]
	}
	if text[0] == '.' {
		out = append(out, '0')
	}
	whole, fraction, pointed := bytes.Cut(text, []byte("."))
	out = append(out, whole...)
	if !pointed {
		return out
	}
	out = append(out, '.')
	if digits(fraction) == 0 {
		out = append(out, '0')
	}
	return append(out, fraction...)
}
