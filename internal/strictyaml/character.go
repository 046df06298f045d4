package strictyaml

import (
	"fmt"
	"unicode/utf8"
)

// characters refuses what a document may not contain as it is, wherever it
// stands. In double quotes it can be written as an escape.
func (p *parser) characters() bool {
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
			return p.syntax(i, fmt.Sprintf("U+%04X is a line break to some readers of YAML only: write it as \\u%04X in double quotes", r, r))
		case !printable(r):
			return p.syntax(i, fmt.Sprintf("control character U+%04X: write it as an escape in double quotes", r))
		}
		i += size
	}
	return true
}

// ambiguousBreak tells the characters that were line breaks in YAML 1.1.
func ambiguousBreak(r rune) bool { return r == '\u0085' || r == '\u2028' || r == '\u2029' }

// printable tells what YAML allows outside of escapes, besides the line feed.
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

// blankAt tells whether a blank, a line break or the end stands at an offset.
func (p *parser) blankAt(i int) bool {
	return i >= len(p.src) || isBlank(p.src[i]) || p.src[i] == '\n'
}

func (p *parser) at(c byte) bool { return p.pos < len(p.src) && p.src[p.pos] == c }

// column is that of the current position, from 0. It is asked for only where
// nothing but ASCII stands before.
func (p *parser) column() int { return p.pos - p.begin }

// marker tells whether a document marker stands here.
func (p *parser) marker(text string) bool {
	end := p.pos + len(text)
	return p.pos == p.begin && end <= len(p.src) && string(p.src[p.pos:end]) == text && p.blankAt(end)
}

// ended tells whether the document is over.
func (p *parser) ended() bool {
	return p.pos == len(p.src) || p.marker("---") || p.marker("...")
}

// skipBlanks moves over spaces and tabs, and tells whether there were tabs.
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

// newline moves over a line break, if there is one.
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
		return p.syntax(p.pos, "a key cannot stand here")
	}
	return p.syntax(p.pos, "unexpected text after the value; text with quotes or brackets at its start has to be in quotes as a whole")
}

// next moves from the beginning of a line to what comes next, over empty lines
// and comments.
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
