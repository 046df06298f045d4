package integration

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The most characters of a name or a title, and of a text that explains something, in a
// workspace's own manifest, and the most keywords.
const (
	maxTitle    = 100
	maxHelp     = 2000
	maxKeywords = 30
)

// shortText reports a text that lists and forms have no room for.
func (p *parser) shortText(pointer, text string, limit int) {
	if n := utf8.RuneCountInString(text); n > limit {
		p.failf(pointer, "has %d characters: shorten it to at most %d", n, limit)
	}
}

func (p *parser) shortFields(pointer string, fields manifestFields) {
	for _, f := range fields {
		here := at(pointer, f.name)
		p.shortText(at(here, "title"), f.value.Title, maxTitle)
		p.shortText(at(here, "help"), f.value.Help, maxHelp)
		p.shortText(at(here, "example"), f.value.Example, maxHelp)
		for i, choice := range f.value.Enum {
			p.shortText(at(here, "enum", strconv.Itoa(i)), choice.Label, maxTitle)
		}
	}
}

func (p *parser) shortInputs(pointer string, inputs named[manifestInput]) {
	for _, in := range inputs {
		p.shortInput(at(pointer, in.name), &in.value)
	}
}

func (p *parser) shortInput(pointer string, in *manifestInput) {
	p.shortText(at(pointer, "title"), in.Title, maxTitle)
	p.shortText(at(pointer, "help"), in.Help, maxHelp)
	p.shortInputs(at(pointer, "properties"), in.Properties.named)
	if in.Items != nil {
		p.shortInput(at(pointer, "items"), in.Items)
	}
}

// checkCharacters reports characters that are not shown as what they are: control
// characters, and those that change the direction of the text around them.
func (p *parser) checkCharacters() {
	p.eachText(func(pointer, text string) {
		if at := strings.IndexFunc(text, isHidden); at >= 0 {
			r, _ := utf8.DecodeRuneInString(text[at:])
			p.failf(pointer, "contains the character %U, which is not visible or changes the direction of text: remove it", r)
		}
	})
}

// isHidden reports whether a character makes a text look like another one. Emoji are
// joined with U+200D.
func isHidden(r rune) bool {
	switch r {
	case '\n', '\t', '\u200d':
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}
