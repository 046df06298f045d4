package reference

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode"
)

// Markdown as GitHub reads it. Text that comes from a manifest is escaped, so that it can
// be neither markup nor HTML, nor end a cell of a table.

var (
	webAddress = regexp.MustCompile("https?://[^\\s<>|`*\\\\\\[\\]\"]+")
	// special matches what can be markup anywhere in a line, and blockStart what can begin
	// a block.
	special    = regexp.MustCompile("[\\\\`*\\[\\]<#~_|]|&[#0-9A-Za-z]+;")
	blockStart = regexp.MustCompile(`^(?:[-+>]|\d+[.)])`)
)

// label returns a text for a heading or a link.
func label(s string) string { return escape(strings.Join(strings.Fields(s), " ")) }

// prose returns a text as one line of Markdown. Addresses of web pages become links.
func prose(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	var out strings.Builder
	rest := 0
	for _, at := range webAddress.FindAllStringIndex(s, -1) {
		end := at[0] + len(strings.TrimRight(s[at[0]:at[1]], ".,;:!?)'"))
		out.WriteString(escape(s[rest:at[0]]) + "<" + s[at[0]:end] + ">")
		rest = end
	}
	out.WriteString(escape(s[rest:]))
	s = out.String()
	if start := blockStart.FindString(s); start != "" {
		s = start[:len(start)-1] + `\` + s[len(start)-1:]
	}
	return s
}

func escape(s string) string {
	var out strings.Builder
	rest := 0
	for _, at := range special.FindAllStringIndex(s, -1) {
		out.WriteString(s[rest:at[0]])
		switch found := s[at[0]]; {
		case found == '|':
			out.WriteString("&#124;")
		case found == '_' && isInWord(s, at[0]):
			out.WriteByte('_')
		default:
			out.WriteString(`\` + string(found))
		}
		rest = at[0] + 1
	}
	out.WriteString(s[rest:])
	return out.String()
}

// isInWord reports whether the character at a position has letters or digits on both sides.
func isInWord(s string, at int) bool {
	isWord := func(i int) bool {
		return i >= 0 && i < len(s) && s[i] < unicode.MaxASCII && (unicode.IsLetter(rune(s[i])) || unicode.IsDigit(rune(s[i])))
	}
	return isWord(at-1) && isWord(at+1)
}

// code returns a text as code in a line of Markdown. What backticks cannot have in every
// place is written in HTML.
func code(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return fmt.Sprintf("`%q`", s)
	case !strings.ContainsAny(s, "`|\n\r"):
		return "`" + s + "`"
	}
	var out strings.Builder
	for _, r := range strings.Join(strings.Fields(s), " ") {
		if strings.ContainsRune("\\`*_[]<>&|~#!:", r) {
			fmt.Fprintf(&out, "&#%d;", r)
		} else {
			out.WriteRune(r)
		}
	}
	return "<code>" + out.String() + "</code>"
}

// codes returns texts as code, with commas.
func codes(texts []string) string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = code(s)
	}
	return strings.Join(out, ", ")
}

// block returns YAML or JSON as a block of code. A long one is folded under a title. No line
// of the text can end the block, because text in YAML and JSON is indented or in quotes.
func block(title, language, s string) string {
	out := "```" + language + "\n" + strings.TrimRight(s, "\n") + "\n```\n\n"
	if strings.Count(s, "\n") > longBlock {
		out = "<details>\n<summary>" + html.EscapeString(title) + "</summary>\n\n" + out + "</details>\n\n"
	}
	return out
}

// longBlock is the number of lines from which a block is folded.
const longBlock = 16

// slugs are the anchors of the headings of a page.
type slugs map[string]bool

// add returns the anchor of a heading, like GitHub.
func (s slugs) add(heading string) string {
	base := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.Join(strings.Fields(heading), " "))
	out := base
	for n := 1; s[out]; n++ {
		out = fmt.Sprintf("%s-%d", base, n)
	}
	s[out] = true
	return out
}
