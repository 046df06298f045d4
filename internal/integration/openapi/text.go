package openapi

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The longest texts and names, in characters.
const (
	maxTitle     = 70
	maxHelp      = 300
	maxInnerHelp = 150 // of the members of objects
	maxSummary   = 500
	maxName      = 40
)

// Markup of Markdown and HTML. Descriptions can have both.
var (
	fences   = regexp.MustCompile("(?s)```.*?(```|$)")
	tags     = regexp.MustCompile(`(?i)</?(a|abbr|b|blockquote|br|center|code|dd|del|details|div|dl|dt|em|font|h[1-6]|hr|i|img|kbd|li|mark|ol|p|pre|s|script|small|span|strong|style|sub|summary|sup|table|tbody|td|th|thead|tr|tt|u|ul|var)(\s[^<>]{0,300})?/?>|<!--[^<>]{0,300}-->`)
	images   = regexp.MustCompile(`!\[[^\[\]]{0,200}\]\([^()]{0,500}\)`)
	links    = regexp.MustCompile(`\[([^\[\]]{1,300})\]\([^()]{0,500}\)`)
	headings = regexp.MustCompile(`(?m)^\s{0,3}(#{1,6}|>|[-*+])\s+`)
	italics  = regexp.MustCompile(`\*([^\s*][^*\n]{0,200})\*`)
	emphasis = regexp.MustCompile("\\*\\*|__|`+|~~")
)

// plain returns a description as one line of plain text with at most so many characters.
// It contains neither control characters nor anything that could become an expression.
func plain(text string, most int) string {
	const enough = 20 // times the result: the rest cannot matter
	if len(text) > most*enough {
		text = strings.ToValidUTF8(text[:most*enough], "")
	}
	text = fences.ReplaceAllString(text, " ")
	text = tags.ReplaceAllString(text, " ")
	text = links.ReplaceAllString(images.ReplaceAllString(text, " "), "$1")
	text = emphasis.ReplaceAllString(headings.ReplaceAllString(text, ""), "")
	text = italics.ReplaceAllString(text, "$1")
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), r == utf8.RuneError:
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	for strings.Contains(text, "${") {
		text = strings.ReplaceAll(text, "${", "$ {")
	}
	return clip(text, most)
}

// clip shortens text to at most so many characters, at the end of a sentence or a word if
// there is one.
func clip(text string, most int) string {
	if enough := (most + 1) * utf8.UTFMax; len(text) > enough { // the rest cannot matter
		text = text[:enough]
	}
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	cut := string([]rune(text)[:most-1])
	if end := strings.LastIndex(cut, ". "); end > len(cut)/2 {
		return cut[:end+1]
	}
	if end := strings.LastIndexByte(cut, ' '); end > len(cut)/2 {
		cut = cut[:end]
	}
	return strings.TrimRight(cut, " ,;:") + "…"
}

// words returns the words of a name in any case.
func words(name string) []string {
	var out []string
	var word []rune
	runes := []rune(clip(name, 400))
	for i, r := range runes {
		isWord := r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r))
		starts := i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if len(word) > 0 && (!isWord || starts) {
			out, word = append(out, string(word)), nil
		}
		if isWord {
			word = append(word, unicode.ToLower(r))
		}
	}
	if len(word) > 0 {
		out = append(out, string(word))
	}
	return out
}

// identifier returns a name in lower case with underscores, such as first_name for
// firstName. Without a letter at the beginning it gets a prefix.
func identifier(name, prefix string) string {
	out := strings.Join(words(name), "_")
	switch {
	case out == "":
		return prefix
	case out[0] < 'a' || out[0] > 'z':
		return prefix + "_" + out
	}
	return out
}

// title returns a name as people write it, such as First name.
func title(name string) string {
	text := plain(strings.Join(words(name), " "), maxTitle)
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// names are names in use, each with the last number that it, or its beginning, was followed
// by.
type names map[string]int

// unique returns a name that is not in use and not too long, and takes it. No number is
// tried twice, because many things can have the same name, or names that begin alike.
func (n names) unique(name string) string {
	const suffix = 8 // characters
	out := cut(name, maxName)
	for stem := cut(name, maxName-suffix); n[out] > 0; {
		n[stem] = max(n[stem], 1) + 1
		out = stem + "_" + strconv.Itoa(n[stem])
	}
	n[out] = 1
	return out
}

func cut(name string, most int) string {
	if len(name) <= most {
		return name
	}
	return strings.TrimRight(name[:most], "_")
}

// isExpression reports whether text would be, or contain, an expression in a manifest or a
// workflow.
func isExpression(text string) bool { return strings.Contains(text, "${{") }

// hasExpression reports whether a value has a text that would be an expression.
func (n *node) hasExpression() bool {
	if isExpression(n.name) || n.kind == kindText && isExpression(n.text) {
		return true
	}
	for _, item := range n.items {
		if item.hasExpression() {
			return true
		}
	}
	return false
}

// isClean reports whether text is valid, and has no control or formatting characters.
func isClean(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) })
}

// printable returns text that does no harm in a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// shownPointer returns a JSON pointer as people see it. A whole one can have 64 KiB.
func shownPointer(pointer string) string { return printable(clip(pointer, 1000)) }

func unescapeFragment(pointer string) string {
	text, err := url.PathUnescape(pointer)
	if err != nil {
		return pointer
	}
	return text
}
