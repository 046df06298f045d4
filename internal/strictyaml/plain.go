package strictyaml

import (
	"fmt"
	"slices"
)

// plainAhead reports whether a plain scalar can begin here.
func (p *parser) plainAhead(flow bool) bool {
	switch p.src[p.pos] {
	case '?', ':':
		return !flow && !p.blankAt(p.pos+1) // YAML parsers disagree about these in flow style
	case '-':
		return !p.blankAt(p.pos+1) && !(flow && isFlowIndicator(p.src[p.pos+1]))
	case ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`', '\n':
		return false
	}
	return true
}

// startError reports why no value can begin here.
func (p *parser) startError() bool {
	c := p.src[p.pos]
	message := fmt.Sprintf("unexpected %q", c)
	switch c {
	case '&':
		message = "anchors are not allowed; text that starts with & has to be in quotes"
	case '*':
		message = "aliases are not allowed; text that starts with * has to be in quotes"
	case '!':
		message = "tags are not allowed; text that starts with ! has to be in quotes"
	case '|', '>', '%', '@', '`':
		message = fmt.Sprintf("text that starts with %c has to be in quotes", c)
	case '-':
		message = "a list entry is not allowed here: put it on its own line"
	case '?':
		message = "complex keys are not allowed; text that starts with ? has to be in quotes"
	case ':':
		message = "there is no key before the colon; text that starts with : has to be in quotes"
	}
	return p.syntax(p.pos, message)
}

// plainEnd returns the end of a plain scalar on its line, including trailing
// blanks.
func (p *parser) plainEnd(from int, flow bool) int {
	i := from
	for ; i < len(p.src) && p.src[i] != '\n'; i++ {
		switch c := p.src[i]; {
		case c == ':' && (p.blankAt(i+1) || flow && isFlowIndicator(p.src[i+1])):
			return i
		case c == '#' && i > from && isBlank(p.src[i-1]):
			return i
		case flow && isFlowIndicator(c):
			return i
		}
	}
	return i
}

// plainLine reads the part of a plain scalar on this line.
func (p *parser) plainLine(flow bool) (text []byte, end int) {
	end = p.plainEnd(p.pos, flow)
	last := end
	for last > p.pos && isBlank(p.src[last-1]) {
		last--
	}
	text = p.src[p.pos:last]
	p.pos = last
	return text, end
}

// plain reads a plain scalar, which is a number or a word of the core schema if
// it has that form. It may continue on lines that are indented further than the
// block around it.
func (p *parser) plain(parent int, flow bool) bool {
	if !p.plainAhead(flow) {
		return p.startError()
	}
	at := p.pos
	text, end := p.plainLine(flow)
	if !flow && end < len(p.src) && p.src[end] == ':' {
		return p.syntax(end, "a key is not allowed here; text with a colon and a space in it has to be in quotes")
	}
	for lines := 1; ; lines++ {
		breaks, more := p.plainContinues(parent, flow)
		switch {
		case !more && lines == 1:
			return p.scalar(at, text)
		case !more:
			return p.text(at, text)
		case lines == 1:
			text = slices.Clone(text)
		}
		p.skipLines(breaks)
		begin := p.pos
		line, end := p.plainLine(flow)
		if !flow && end < len(p.src) && p.src[end] == ':' {
			return p.syntax(begin, "a key is not allowed here: the line belongs to the text that begins on line "+p.lineOf(at)+
				", because it is indented further")
		}
		text = append(fold(text, breaks), line...)
	}
}

// skipLines skips blanks and a number of line breaks.
func (p *parser) skipLines(breaks int) {
	for range breaks {
		p.skipBlanks()
		p.newline()
	}
	p.skipBlanks()
}

// plainContinues looks ahead for a line that continues a plain scalar, and counts
// the line breaks before it.
func (p *parser) plainContinues(parent int, flow bool) (breaks int, more bool) {
	begin, i := p.begin, p.pos
	for {
		spaces := i
		for i < len(p.src) && isBlank(p.src[i]) {
			if p.src[i] == ' ' && spaces == i {
				spaces++
			}
			i++
		}
		if i == len(p.src) {
			return 0, false
		}
		if p.src[i] == '\n' {
			breaks++
			i++
			begin = i
			continue
		}
		if breaks == 0 || spaces-begin <= parent || p.src[i] == '#' {
			return 0, false
		}
		ahead := parser{src: p.src, pos: i, begin: begin}
		if ahead.ended() || flow && (isFlowIndicator(p.src[i]) || p.plainEnd(i, true) == i) {
			return 0, false
		}
		return breaks, true
	}
}

// fold appends folded line breaks: a single one becomes a space, of several the
// first is dropped.
func fold(text []byte, breaks int) []byte {
	if breaks == 1 {
		return append(text, ' ')
	}
	for range breaks - 1 {
		text = append(text, '\n')
	}
	return text
}

// keyText reads a key, without its colon.
func (p *parser) keyText(parent int, flow bool) (key string, ok bool) {
	at := p.pos
	switch c := p.src[p.pos]; {
	case c == '"' || c == '\'':
		text, ok := p.quoted(parent, true)
		return string(text), ok
	case c == '[' || c == '{':
		return "", p.syntax(at, "a key has to be text")
	case !p.plainAhead(flow):
		return "", p.startError()
	}
	text, _ := p.plainLine(flow)
	switch kind, _ := resolve(text); {
	case string(text) == "<<":
		return "", p.syntax(at, "merge keys are not allowed")
	case kind != kindText:
		return "", p.syntax(at, fmt.Sprintf("a key has to be text: put %.64s in quotes", text))
	}
	return string(text), true
}
