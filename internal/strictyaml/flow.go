package strictyaml

import (
	"bytes"
	"fmt"
)

// flow reads a value in flow style: with brackets, quotes or plain.
func (p *parser) flow(parent int) bool {
	switch at := p.pos; p.src[at] {
	case '[':
		return p.flowSequence(parent)
	case '{':
		return p.flowMapping(parent)
	case '"', '\'':
		text, ok := p.quoted(parent, false)
		return ok && p.text(at, text)
	}
	return p.plain(parent, true)
}

func (p *parser) flowSequence(parent int) bool {
	opened := p.pos
	if !p.open(opened, '[', ']') {
		return false
	}
	for p.pos++; ; {
		if !p.separate(parent, opened) {
			return false
		}
		if p.at(']') {
			p.pos++
			return p.close()
		}
		if !p.flow(parent) || !p.separate(parent, opened) {
			return false
		}
		p.endValue()
		switch {
		case p.at(','):
			p.pos++
		case p.at(':'):
			return p.syntax(p.pos, "a pair inside of [ ] needs { } around it")
		case !p.at(']'):
			return p.syntax(p.pos, "expected a comma or ]")
		}
	}
}

func (p *parser) flowMapping(parent int) bool {
	opened := p.pos
	if !p.open(opened, '{', '}') {
		return false
	}
	for p.pos++; ; {
		if !p.separate(parent, opened) {
			return false
		}
		if p.at('}') {
			p.pos++
			return p.close()
		}
		if !p.flowMember(parent, opened) || !p.separate(parent, opened) {
			return false
		}
		p.endValue()
		switch {
		case p.at(','):
			p.pos++
		case !p.at('}'):
			return p.syntax(p.pos, "expected a comma or }")
		}
	}
}

func (p *parser) flowMember(parent, opened int) bool {
	at, quoted := p.pos, p.at('"') || p.at('\'')
	key, ok := p.keyText(parent, true)
	if !ok || !p.member(at, key) {
		return false
	}
	p.skipBlanks()
	after := p.pos + 1
	if !p.at(':') || !quoted && !p.blankAt(after) {
		return p.syntax(p.pos, "expected a colon and a space after the key")
	}
	p.pos = after
	if !p.separate(parent, opened) {
		return false
	}
	if p.at(',') || p.at('}') {
		return p.null(at)
	}
	return p.flow(parent)
}

// separate skips blanks, comments and line breaks between brackets that were
// opened at an offset. A new line must be indented further than the block around
// it, unless it begins with a closing bracket.
func (p *parser) separate(parent, opened int) bool {
	broke := false
	for {
		for broke && p.at(' ') {
			p.pos++
		}
		column := p.column()
		p.skipBlanks()
		begin := p.pos
		p.skipComment()
		if bytes.ContainsAny(p.src[begin:p.pos], "]}") {
			p.hiding = begin
		}
		switch {
		case p.newline():
			broke = true
			continue
		case p.pos == len(p.src):
			return p.syntax(opened, "the bracket is not closed"+p.hidden(opened))
		case p.marker("---"), p.marker("..."):
			return p.syntax(opened, "the bracket is not closed before the document ends"+p.hidden(opened))
		case broke && column <= parent && !p.at(']') && !p.at('}'):
			return p.syntax(p.pos, "this line is not indented far enough: the bracket of line "+p.lineOf(opened)+" is not closed"+p.hidden(opened))
		}
		return true
	}
}

// hidden returns a hint about a bracket that may be closed in a comment, because text with a
// # in it lacks its quotes, or "".
func (p *parser) hidden(opened int) string {
	if p.hiding <= opened {
		return ""
	}
	comment, _, _ := bytes.Cut(p.src[p.hiding:], []byte("\n"))
	return fmt.Sprintf("; %q is a comment, because the # comes after a space: text with it has to be in quotes", comment)
}
