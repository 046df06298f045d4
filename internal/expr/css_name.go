package expr

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// name reads an identifier of CSS, in which other characters are escaped.
func (p *selectorParser) name() (string, bool) {
	var b strings.Builder
	digits := false // the name may not begin with a digit
	for p.rest != "" {
		r, size := utf8.DecodeRuneInString(p.rest)
		switch {
		case r == '\\':
			p.rest = p.rest[1:]
			b.WriteRune(p.escape())
			digits = true
			continue
		case r >= '0' && r <= '9':
			if !digits {
				return "", false
			}
		case r >= utf8.RuneSelf, r == '_', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			digits = true
		case r == '-':
		default:
			return b.String(), digits
		}
		b.WriteString(p.rest[:size])
		p.rest = p.rest[size:]
	}
	return b.String(), digits
}

// escape reads what follows a backslash: a character, or its number in hexadecimal.
func (p *selectorParser) escape() rune {
	n := 0
	for n < len(p.rest) && n < 6 && strings.IndexByte("0123456789abcdefABCDEF", p.rest[n]) >= 0 {
		n++
	}
	if n == 0 {
		r, size := utf8.DecodeRuneInString(p.rest)
		p.rest = p.rest[size:]
		return r
	}
	code, err := strconv.ParseUint(p.rest[:n], 16, 32)
	p.rest = p.rest[n:]
	if p.rest != "" && strings.IndexByte(cssSpace, p.rest[0]) >= 0 {
		p.rest = p.rest[1:]
	}
	if err != nil || code == 0 || code > utf8.MaxRune || !utf8.ValidRune(rune(code)) {
		return utf8.RuneError
	}
	return rune(code)
}

func (p *selectorParser) quoted() (string, bool) {
	if p.rest == "" || p.rest[0] != '"' && p.rest[0] != '\'' {
		return "", false
	}
	quote := rune(p.rest[0])
	p.rest = p.rest[1:]
	var b strings.Builder
	for p.rest != "" {
		r, size := utf8.DecodeRuneInString(p.rest)
		p.rest = p.rest[size:]
		switch r {
		case quote:
			return b.String(), true
		case '\\':
			b.WriteRune(p.escape())
		default:
			b.WriteRune(r)
		}
	}
	return "", false
}
