package expr

import (
	"strings"
	"unicode/utf8"
)

const (
	opening = "${{"
	closing = "}}"
)

type part struct {
	text   string
	origin position
	isExpr bool
}

// HasExpression reports whether CompileTemplate would find an expression or an
// error in s. If not, s evaluates to itself.
func HasExpression(s string) bool { return strings.Contains(s, opening) }

func scan(s string, origin position) ([]part, *Error) {
	if len(s) > maxTemplate {
		return nil, located(invalidf(-1, "a string with expressions may have at most %d bytes", maxTemplate), excerpt(s), origin)
	}
	var parts []part
	var text strings.Builder
	expressions := 0
	for at := origin; ; {
		before, rest, found := strings.Cut(s, opening)
		if found && strings.HasSuffix(before, "$") {
			text.WriteString(before[:len(before)-1] + opening)
			at = at.advance(before + opening)
			s = rest
			continue
		}
		text.WriteString(before)
		if text.Len() > 0 {
			parts = append(parts, part{text: text.String()})
			text.Reset()
		}
		if !found {
			return parts, nil
		}
		if expressions++; expressions > maxParts {
			return nil, located(invalidf(-1, "a string may hold at most %d expressions", maxParts), excerpt(rest), at)
		}
		inner := at.advance(before + opening)
		// Searching only as far as an expression may reach keeps this linear.
		end := expressionEnd(rest[:min(len(rest), maxSource+len(closing))])
		if end < 0 {
			return nil, located(unclosed(rest), excerpt(rest), at.advance(before))
		}
		parts = append(parts, part{text: rest[:end], origin: inner, isExpr: true})
		at = inner.advance(rest[:end+len(closing)])
		s = rest[end+len(closing):]
	}
}

func unclosed(rest string) error {
	if len(rest) > maxSource {
		return invalidf(-1, "this ${{ has no closing }} within %d bytes, or a quote inside it is not closed", maxSource)
	}
	return invalidf(-1, "this ${{ has no closing }}, or a quote inside it is not closed")
}

// expressionEnd returns the index of the }} that closes an expression, -1 if
// there is none. It ignores braces inside strings, comments and maps.
func expressionEnd(s string) int {
	braces := 0
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '"' || c == '\'' || c == '`':
			i = literalEnd(s, i)
			if i < 0 {
				return -1
			}
			continue
		case strings.HasPrefix(s[i:], "/*"):
			end := strings.Index(s[i+2:], "*/")
			if end < 0 {
				return -1
			}
			i += end + 4
			continue
		case strings.HasPrefix(s[i:], "//"):
			i = commentEnd(s, i)
			continue
		case c == '{':
			braces++
		case c == '}' && braces > 0:
			braces--
		case strings.HasPrefix(s[i:], closing):
			return i
		}
		i++
	}
	return -1
}

// literalEnd returns the index after the string literal that begins at i.
func literalEnd(s string, i int) int {
	quote := s[i]
	for i++; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quote != '`':
			i++
		case s[i] == quote && quote == '`' && strings.HasPrefix(s[i+1:], "`"):
			i++ // a doubled backtick is an escaped one
		case s[i] == quote:
			return i + 1
		}
	}
	return -1
}

// commentEnd returns the end of a // comment: the end of its line or expression.
func commentEnd(s string, i int) int {
	end := len(s)
	for _, stop := range []string{"\n", closing} {
		if j := strings.Index(s[i:], stop); j >= 0 {
			end = min(end, i+j)
		}
	}
	return end
}

// excerpt truncates the source that an error shows.
func excerpt(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for s != "" && !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]) {
		s = s[:len(s)-1]
	}
	return s + "…"
}
