package graphqlrequest

import (
	"fmt"
	"strings"
)

// token is a lexical token of GraphQL: its text, or that of its first character for a
// string or a number. The zero token is the end of the document.
type token struct {
	kind byte // punctuator, name, number or text; 0 at the end
	text string
	line int
}

// The kinds of tokens.
const (
	punctuator = 'p'
	name       = 'n'
	number     = '0'
	text       = '"'
)

func (t token) is(text string) bool {
	return (t.kind == punctuator || t.kind == name) && t.text == text
}

func (t token) String() string {
	switch t.kind {
	case 0:
		return "the end"
	case text:
		return "a string"
	case number:
		return "a number"
	}
	return fmt.Sprintf("%q", t.text)
}

type syntaxError struct {
	line    int
	message string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.message) }

// lexer splits a document into tokens, without comments.
type lexer struct {
	rest string
	line int
}

func (l *lexer) next() (token, error) {
	l.skipIgnored()
	if l.rest == "" {
		return token{line: l.line}, nil
	}
	t := token{line: l.line}
	length := 1
	switch c := l.rest[0]; {
	case strings.HasPrefix(l.rest, "..."):
		t.kind, length = punctuator, 3
	case strings.IndexByte("!$&():=@[]{|}", c) >= 0:
		t.kind = punctuator
	case isNameStart(c):
		t.kind, length = name, lengthOf(l.rest, func(c byte) bool { return isNameStart(c) || isDigit(c) })
	case c == '-' || isDigit(c):
		t.kind, length = number, lengthOf(l.rest, func(c byte) bool { return isDigit(c) || strings.IndexByte("+-.eE", c) >= 0 })
	case c == '"':
		t.kind = text
		if length = stringLength(l.rest); length == 0 {
			return t, &syntaxError{l.line, "a string is not closed"}
		}
	default:
		char := []rune(l.rest[:min(len(l.rest), 4)])[0]
		return t, &syntaxError{l.line, fmt.Sprintf("unexpected character %q", char)}
	}
	t.text = l.rest[:length]
	l.advance(length)
	return t, nil
}

// advance skips bytes and counts the lines in them.
func (l *lexer) advance(length int) {
	skipped := l.rest[:length]
	l.line += strings.Count(skipped, "\n") + strings.Count(skipped, "\r") - strings.Count(skipped, "\r\n")
	l.rest = l.rest[length:]
}

// skipIgnored skips spaces, commas, comments and the byte order mark.
func (l *lexer) skipIgnored() {
	for {
		trimmed := strings.TrimLeft(l.rest, " \t\r\n,\ufeff")
		l.advance(len(l.rest) - len(trimmed))
		if !strings.HasPrefix(l.rest, "#") {
			return
		}
		end := strings.IndexAny(l.rest, "\r\n")
		if end < 0 {
			end = len(l.rest)
		}
		l.advance(end)
	}
}

func isNameStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func lengthOf(s string, accepts func(byte) bool) int {
	n := 1
	for n < len(s) && accepts(s[n]) {
		n++
	}
	return n
}

// stringLength returns the length of the string or block string at the beginning of a
// text, or 0 if it has no end.
func stringLength(s string) int {
	const block = `"""`
	if strings.HasPrefix(s, block) {
		for at := len(block); ; {
			end := strings.Index(s[at:], block)
			if end < 0 {
				return 0
			}
			if at += end; s[at-1] != '\\' {
				return at + len(block)
			}
			at += len(block)
		}
	}
	for at := 1; at < len(s); at++ {
		switch s[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		case '\n', '\r':
			return 0
		}
	}
	return 0
}
