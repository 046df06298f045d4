package strictyaml

import (
	"fmt"
	"unicode/utf8"
)

// checkCharacters rejects characters that a document must not contain literally.
// In double quotes they can be escaped.
func (p *parser) checkCharacters() bool {
	for i := 0; i < len(p.src); {
		c := p.src[i]
		if c >= ' ' && c < 0x7F || c == '\n' || c == '\t' {
			i++
			continue
		}
		r, size := utf8.DecodeRune(p.src[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return p.syntax(i, "invalid UTF-8")
		case r == 0:
			return p.syntax(i, "contains a NUL character")
		case r == '\uFEFF':
			return p.syntax(i, "contains a byte order mark")
		case ambiguousBreak(r):
			return p.syntax(i, fmt.Sprintf("U+%04X is a line break in some versions of YAML only: write it as \\u%04X in double quotes", r, r))
		case !printable(r):
			return p.syntax(i, fmt.Sprintf("control character U+%04X: write it as an escape in double quotes", r))
		}
		i += size
	}
	return true
}

// ambiguousBreak reports whether r is a line break only in YAML 1.1.
func ambiguousBreak(r rune) bool { return r == '\u0085' || r == '\u2028' || r == '\u2029' }

// printable reports whether YAML allows r without escaping, besides the line feed.
func printable(r rune) bool {
	switch {
	case r == '\t', r >= ' ' && r <= '~', r == '\u0085':
		return true
	case r >= 0xA0 && r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFD, r >= 0x10000:
		return r != '\uFEFF'
	}
	return false
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func isFlowIndicator(c byte) bool {
	return c == ',' || c == '[' || c == ']' || c == '{' || c == '}'
}

// blankAt reports whether a blank, a line break or the end is at an offset.
func (p *parser) blankAt(i int) bool {
	return i >= len(p.src) || isBlank(p.src[i]) || p.src[i] == '\n'
}

func (p *parser) at(c byte) bool { return p.pos < len(p.src) && p.src[p.pos] == c }

// column returns the column of the current position, from 0. It is valid only if
// the line is ASCII up to here.
func (p *parser) column() int { return p.pos - p.begin }

// marker reports whether the given document marker is here.
func (p *parser) marker(text string) bool {
	end := p.pos + len(text)
	return p.pos == p.begin && end <= len(p.src) && string(p.src[p.pos:end]) == text && p.blankAt(end)
}

func (p *parser) ended() bool {
	return p.pos == len(p.src) || p.marker("---") || p.marker("...")
}

// skipBlanks skips spaces and tabs, and reports whether there were tabs.
func (p *parser) skipBlanks() (tabs bool) {
	for p.pos < len(p.src) && isBlank(p.src[p.pos]) {
		tabs = tabs || p.src[p.pos] == '\t'
		p.pos++
	}
	return tabs
}

// skipComment moves to the end of the line if a comment begins here.
func (p *parser) skipComment() {
	if p.at('#') && (p.pos == p.begin || isBlank(p.src[p.pos-1])) {
		for p.pos < len(p.src) && p.src[p.pos] != '\n' {
			p.pos++
		}
	}
}

// newline skips a line break, and reports whether there was one.
func (p *parser) newline() bool {
	if !p.at('\n') {
		return false
	}
	p.pos++
	p.begin = p.pos
	return true
}

// endLine makes sure that nothing but a comment follows on the line.
func (p *parser) endLine() bool {
	p.skipBlanks()
	p.skipComment()
	switch {
	case p.pos == len(p.src) || p.newline():
		return true
	case p.at('#'):
		return p.syntax(p.pos, "a comment needs a space before it")
	case p.at(':'):
		return p.syntax(p.pos, "a key is not allowed here")
	}
	return p.syntax(p.pos, "unexpected text after the value; text that starts with a quote or a bracket has to be in quotes as a whole")
}

// next moves from the beginning of a line to the next token, and skips empty
// lines and comments.
func (p *parser) next() bool {
	for {
		for p.at(' ') {
			p.pos++
		}
		tab := p.pos
		tabs := p.skipBlanks()
		p.skipComment()
		if p.newline() {
			continue
		}
		if tabs && p.pos < len(p.src) {
			return p.syntax(tab, "a tab cannot indent: use spaces")
		}
		return true
	}
}
