package strictyaml

import (
	"bytes"
	"fmt"
	"math/big"
)

type kind int

const (
	kindText    kind = iota
	kindWord         // null, true or false
	kindDecimal      // with or without a fraction and an exponent
	kindBased        // octal or hexadecimal
	kindNoJSON       // infinite or not a number
)

// resolve says what text without quotes is under the core schema of YAML 1.2,
// and for a word how JSON writes it.
func resolve(text []byte) (kind, string) {
	switch string(text) {
	case "", "~", "null", "Null", "NULL":
		return kindWord, "null"
	case "true", "True", "TRUE":
		return kindWord, "true"
	case "false", "False", "FALSE":
		return kindWord, "false"
	case ".nan", ".NaN", ".NAN":
		return kindNoJSON, ""
	}
	unsigned := text
	if text[0] == '-' || text[0] == '+' {
		unsigned = text[1:]
	}
	switch string(unsigned) {
	case ".inf", ".Inf", ".INF":
		return kindNoJSON, ""
	}
	if isDecimal(unsigned) {
		return kindDecimal, ""
	}
	if len(text) > 2 && text[0] == '0' && (text[1] == 'o' && only(text[2:], "01234567") || text[1] == 'x' && only(text[2:], "0123456789abcdefABCDEF")) {
		return kindBased, ""
	}
	return kindText, ""
}

// isDecimal tells digits with an optional fraction and exponent. There is a
// digit before or after the point.
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

func only(text []byte, set string) bool { return len(bytes.Trim(text, set)) == 0 }

// scalar writes the value of text without quotes.
func (p *parser) scalar(at int, text []byte) bool {
	kind, word := resolve(text)
	switch {
	case kind == kindText:
		return p.text(at, text)
	case kind == kindNoJSON:
		return p.syntax(at, fmt.Sprintf("%s is no number that can be stored", text))
	case len(text) > maxNumberBytes:
		return p.refuse(at, fmt.Sprintf("number is too long (more than %d characters)", maxNumberBytes))
	}
	if _, ok := p.value(at); !ok {
		return false
	}
	switch kind {
	case kindWord:
		p.out = append(p.out, word...)
	case kindBased:
		n := new(big.Int)
		n.SetString(string(text), 0) // it has the same prefixes
		p.out = n.Append(p.out, 10)
	default:
		p.out = appendDecimal(p.out, text)
	}
	return true
}

// appendDecimal writes a number as JSON does: without a plus sign or zeros at
// the front, and with a digit on both sides of the point.
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
