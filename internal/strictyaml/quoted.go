package strictyaml

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

func (p *parser) quoted(parent int, key bool) (text []byte, ok bool) {
	opened, quote := p.pos, p.src[p.pos]
	keep := 0 // blanks after this are dropped at the end of a line
	for p.pos++; p.pos < len(p.src); {
		switch c := p.src[p.pos]; {
		case c == '\'' && quote == '\'' && p.pos+1 < len(p.src) && p.src[p.pos+1] == quote:
			text = append(text, quote)
			keep = len(text)
			p.pos += 2
		case c == quote:
			p.pos++
			return text, true
		case c == '\n':
			if key {
				return nil, p.syntax(opened, "a key has to be on one line")
			}
			breaks, ok := p.foldLine(parent, opened)
			if !ok {
				return nil, false
			}
			text = fold(text[:keep], breaks)
			keep = len(text)
		case c == '\\' && quote == '"':
			if text, ok = p.escape(text, parent, opened); !ok {
				return nil, false
			}
			keep = len(text)
		default:
			text = append(text, c)
			if !isBlank(c) {
				keep = len(text)
			}
			p.pos++
		}
	}
	return nil, p.syntax(opened, "the text in quotes that begins here is not closed")
}

// foldLine skips and counts line breaks inside quotes, up to the next non-empty
// line.
func (p *parser) foldLine(parent, opened int) (breaks int, ok bool) {
	for {
		for p.newline() {
			breaks++
		}
		for p.at(' ') {
			p.pos++
		}
		column := p.column()
		p.skipBlanks()
		switch {
		case p.at('\n'):
			continue
		case p.pos == len(p.src), p.marker("---"), p.marker("..."):
			return 0, p.syntax(opened, "the text in quotes that begins here is not closed")
		case column <= parent:
			return 0, p.syntax(opened, "the text in quotes that begins here is not closed before line "+p.lineOf(p.pos)+
				", which is not indented under it")
		}
		return breaks, true
	}
}

var escapes = map[byte]string{
	'a': "\a", 'b': "\b", 't': "\t", '\t': "\t", 'n': "\n", 'v': "\v", 'f': "\f", 'r': "\r", 'e': "\x1b",
	' ': " ", '"': `"`, '/': "/", '\\': `\`, 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029",
}

// escape reads an escape sequence. An escaped line break joins two lines.
func (p *parser) escape(text []byte, parent, opened int) ([]byte, bool) {
	at := p.pos
	if at+1 == len(p.src) {
		return nil, p.syntax(opened, "the text in quotes that begins here is not closed")
	}
	p.pos += 2
	switch c := p.src[at+1]; c {
	case '\n':
		p.pos--
		breaks, ok := p.foldLine(parent, opened)
		for range breaks - 1 {
			text = append(text, '\n')
		}
		return text, ok
	case '0':
		return nil, p.abort(at, "contains a NUL character")
	case 'x':
		return p.codePoint(text, at, 2)
	case 'u':
		return p.codePoint(text, at, 4)
	case 'U':
		return p.codePoint(text, at, 8)
	default:
		plain, known := escapes[c]
		if !known {
			return nil, p.syntax(at, `invalid escape: write \\ for a backslash, or use single quotes`)
		}
		return append(text, plain...), true
	}
}

func (p *parser) codePoint(text []byte, at, digits int) ([]byte, bool) {
	r, ok := p.hex(digits)
	if !ok {
		return nil, p.syntax(at, "invalid escape: expected "+strconv.Itoa(digits)+" hexadecimal digits")
	}
	if digits == 4 && utf16.IsSurrogate(r) && p.pos+1 < len(p.src) && p.src[p.pos] == '\\' && p.src[p.pos+1] == 'u' {
		p.pos += 2
		low, _ := p.hex(digits)
		r = utf16.DecodeRune(r, low) // as in JSON
		if r == utf8.RuneError {
			return nil, p.syntax(at, "the escape is half of a surrogate pair")
		}
	}
	switch {
	case r == 0:
		return nil, p.abort(at, "contains a NUL character")
	case utf16.IsSurrogate(r):
		return nil, p.syntax(at, "the escape is half of a surrogate pair")
	case !utf8.ValidRune(r):
		return nil, p.syntax(at, "the escape is not a Unicode character")
	}
	return utf8.AppendRune(text, r), true
}

func (p *parser) hex(digits int) (rune, bool) {
	if p.pos+digits > len(p.src) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(p.src[p.pos:p.pos+digits]), 16, 31)
	if err != nil {
		return 0, false
	}
	p.pos += digits
	return rune(n), true
}
