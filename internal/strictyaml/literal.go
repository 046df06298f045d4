package strictyaml

import "fmt"

// header is the first line of a block scalar.
type header struct {
	folded bool
	chomp  byte // '-', '+' or 0
	indent int  // indentation relative to the parent, 0 if not given
}

func (p *parser) literal(parent int) bool {
	at := p.pos
	h, ok := p.header()
	if !ok {
		return false
	}
	indent := max(0, parent) + h.indent
	if h.indent == 0 {
		if indent, ok = p.textIndent(parent); !ok {
			return false
		}
	}
	var text []byte
	breaks := 0                  // line breaks that were read but not written yet
	began, spaced := false, true // spaced: the line before begins with a blank
	for p.textLine(indent) {
		from := p.pos
		for p.pos < len(p.src) && p.src[p.pos] != '\n' {
			p.pos++
		}
		line := p.src[from:p.pos]
		if len(line) > 0 {
			nowSpaced := isBlank(line[0])
			if h.folded && began && !spaced && !nowSpaced {
				text = fold(text, breaks)
			} else {
				text = appendBreaks(text, breaks)
			}
			text = append(text, line...)
			began, spaced, breaks = true, nowSpaced, 0
		}
		if p.newline() {
			breaks++
		}
	}
	switch {
	case h.chomp == '+':
		text = appendBreaks(text, breaks)
	case h.chomp == 0 && began:
		text = appendBreaks(text, min(1, breaks))
	}
	return p.text(at, text)
}

func appendBreaks(text []byte, n int) []byte {
	for range n {
		text = append(text, '\n')
	}
	return text
}

func (p *parser) header() (h header, ok bool) {
	h.folded = p.at('>')
	for p.pos++; p.pos < len(p.src); p.pos++ {
		switch c := p.src[p.pos]; {
		case (c == '-' || c == '+') && h.chomp == 0:
			h.chomp = c
		case c >= '1' && c <= '9' && h.indent == 0:
			h.indent = int(c - '0')
		case p.blankAt(p.pos):
			return h, p.endLine()
		default:
			return h, p.syntax(p.pos, fmt.Sprintf("unexpected %q: a block of text begins on the line after | or >", c))
		}
	}
	return h, true
}

// textIndent returns the indentation of a block scalar: that of its first
// non-empty line.
func (p *parser) textIndent(parent int) (indent int, ok bool) {
	empty, emptyAt := 0, p.pos
	for i := p.pos; ; i++ {
		begin := i
		for i < len(p.src) && p.src[i] == ' ' {
			i++
		}
		indent = i - begin
		if indent > empty && (i == len(p.src) || p.src[i] == '\n') {
			empty, emptyAt = indent, begin
		}
		switch {
		case i == len(p.src):
			return max(empty, parent+1), true
		case p.src[i] == '\n':
			continue
		case indent <= parent:
			return max(empty, parent+1), true
		}
		if indent < empty {
			return 0, p.syntax(emptyAt, "an empty line at the beginning of a block of text is indented further than the text")
		}
		return indent, true
	}
}

// textLine moves to the text of the next line of a block scalar, and reports
// whether there is one.
func (p *parser) textLine(indent int) bool {
	if p.ended() {
		return false
	}
	i := p.pos
	for i < len(p.src) && p.src[i] == ' ' && i-p.begin < indent {
		i++
	}
	if i-p.begin < indent && (i == len(p.src) || p.src[i] != '\n') {
		return false
	}
	p.pos = i
	return true
}
