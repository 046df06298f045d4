package mask

import (
	"html"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// escaping is a way to escape characters in text. Every encoder escapes other
// characters, and some escape the same ones in several ways. So texts are decoded
// before they are searched, instead of searching for all escaped forms of a value.
type escaping struct {
	marks string // the characters that escapes begin with
	// unescape writes the character of the escape that a text begins with, and returns
	// the length of the escape. It returns zero if there is none.
	unescape func(out *strings.Builder, s string) int
	plus     bool // + is an escaped space
}

var (
	jsonEscaping = escaping{marks: `\`, unescape: unescapeJSON}
	escapings    = []escaping{
		jsonEscaping,
		{marks: `&`, unescape: unescapeEntity},
		{marks: `%`, unescape: unescapeURL},
		{marks: `%+`, unescape: unescapeForm, plus: true},
	}
)

// decode returns a text without escapes, or nil if it has none.
func (e escaping) decode(s string) *text {
	at := strings.IndexAny(s, e.marks)
	if at < 0 {
		return nil
	}
	var out strings.Builder
	out.Grow(len(s))
	var jumps []jump
	rest := s
	for ; at >= 0; at = strings.IndexAny(rest, e.marks) {
		out.WriteString(rest[:at])
		rest = rest[at:]
		length := e.unescape(&out, rest)
		if length == 0 {
			out.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		rest = rest[length:]
		jumps = append(jumps, jump{at: out.Len(), by: len(s) - len(rest) - out.Len()})
	}
	if jumps == nil {
		return nil
	}
	out.WriteString(rest)
	return &text{s: out.String(), jumps: jumps}
}

// unescapeJSON decodes an escape of JSON such as \/ or \u002f.
func unescapeJSON(out *strings.Builder, s string) int {
	const short, meaning = `"\/bfnrt'`, "\"\\/\b\f\n\r\t'"
	if len(s) < 2 {
		return 0
	}
	if i := strings.IndexByte(short, s[1]); i >= 0 {
		out.WriteByte(meaning[i])
		return 2
	}
	r, ok := unicodeEscape(s)
	if !ok {
		return 0
	}
	if utf16.IsSurrogate(r) {
		low, _ := unicodeEscape(s[6:])
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return 0
		}
		out.WriteRune(r)
		return 12
	}
	out.WriteRune(r)
	return 6
}

// unicodeEscape decodes an escape such as \u002f.
func unicodeEscape(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	r, digits := number(s[2:6], 16)
	return r, digits == 4
}

// maxEntity is the length of the longest name of an entity in HTML.
const maxEntity = 31

// unescapeEntity decodes an entity of HTML or XML such as &amp;, &#38; or &#x26;.
func unescapeEntity(out *strings.Builder, s string) int {
	if len(s) > 2 && s[1] == '#' {
		return unescapeReference(out, s)
	}
	end := strings.IndexByte(s[:min(len(s), maxEntity+2)], ';') + 1
	decoded := html.UnescapeString(s[:end])
	if decoded == s[:end] || strings.HasSuffix(decoded, ";") { // the name is only the beginning of it
		return 0
	}
	out.WriteString(decoded)
	return end
}

// unescapeReference decodes a numeric reference, whose semicolon may be missing.
func unescapeReference(out *strings.Builder, s string) int {
	end, base := 2, 10
	if s[2]|0x20 == 'x' {
		end, base = 3, 16
	}
	r, digits := number(s[end:], base)
	if digits == 0 || r == 0 {
		return 0
	}
	if end += digits; end < len(s) && s[end] == ';' {
		end++
	}
	out.WriteRune(r)
	return end
}

// number returns the number that a text begins with and the count of its digits, which
// is zero if the number is not that of a character.
func number(s string, base int) (r rune, digits int) {
	for digits < len(s) {
		digit := digitOf(s[digits])
		if digit >= base {
			break
		}
		if r = r*rune(base) + rune(digit); r > utf8.MaxRune {
			return 0, 0
		}
		digits++
	}
	return r, digits
}

func digitOf(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return 16
}

// unescapeURL decodes an escape of a URL such as %2F.
func unescapeURL(out *strings.Builder, s string) int {
	if len(s) < 3 {
		return 0
	}
	n, digits := number(s[1:3], 16)
	if digits < 2 {
		return 0
	}
	out.WriteByte(byte(n))
	return 3
}

// unescapeForm decodes an escape of a form, in which + is a space.
func unescapeForm(out *strings.Builder, s string) int {
	if s[0] == '+' {
		out.WriteByte(' ')
		return 1
	}
	return unescapeURL(out, s)
}
