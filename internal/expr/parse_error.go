package expr

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

// parseError converts an error of the parser to a message for users. The parser's
// own messages are about tokens, and often about the token after the wrong one.
// The parser read text, which is source with insertions.
func parseError(source, text string, inserted []int, err error) error {
	var e *file.Error
	if !errors.As(err, &e) {
		return invalidf(0, "the expression cannot be parsed")
	}
	message, at := newMistake(text, e).explain()
	if strings.Contains(source, "${{") {
		message += "; ${{ }} goes around the whole expression"
	}
	return invalidf(min(original(inserted, at), utf8.RuneCountInString(source)), "%s", message)
}

// parserError is an error of the parser in the text that it read.
type parserError struct {
	message string
	text    []rune
	from    int
	to      int
	tokens  []lexer.Token // up to the end, or to what cannot be read
}

func newMistake(text string, e *file.Error) *parserError {
	m := &parserError{message: e.Message, text: []rune(text)}
	m.from = min(max(0, e.From), len(m.text))
	m.to = min(max(m.from, e.To), len(m.text))
	l := lexer.New()
	l.Reset(file.NewSource(text))
	for {
		token, err := l.Next()
		if err != nil || token.Kind == lexer.EOF {
			return m
		}
		m.tokens = append(m.tokens, token)
	}
}

// explanations maps the beginnings of messages of the parser and its lexer to
// functions that return a message for users and its position. A test checks that
// the list covers all messages of the library.
var explanations = []struct {
	begins  string
	explain func(*parserError) (message string, at int)
}{
	{"unexpected token EOF", (*parserError).incomplete},
	{"unexpected end of expression", (*parserError).incomplete},
	{"unexpected token ", (*parserError).unexpected},
	{"unrecognized character: ", (*parserError).invalidCharacter},
	{"compilation failed: expression exceeds maximum allowed nodes", (*parserError).tooLarge},
	{"Operator (", (*parserError).mixed},
	{"invalid hex literal: ", (*parserError).badNumber},
	{"invalid float literal: ", (*parserError).badNumber},
	{"invalid binary literal: ", (*parserError).badNumber},
	{"invalid octal literal: ", (*parserError).badNumber},
	{"invalid integer literal: ", (*parserError).badNumber},
	{"integer literal is too large", (*parserError).badNumber},
	{"float literal is too large", (*parserError).badNumber},
	{"bad number syntax: ", (*parserError).badNumberSyntax},
	{"expected at least ", (*parserError).tooFewArguments},
	{"wrap predicate with brackets { and }", (*parserError).unwrapped},
	{"a map key must be ", (*parserError).badKey},
	{"expected name", (*parserError).missingName},
	{"literal not terminated", (*parserError).unclosedText},
	{"invalid char escape", (*parserError).badEscape},
	{"unable to unescape ", (*parserError).badEscape},
	{"too large string", (*parserError).tooLarge},
	{"unclosed comment", (*parserError).unclosedComment},
	{"unknown lexing error", (*parserError).unreadable},
}

func (m *parserError) explain() (message string, at int) {
	for _, one := range explanations {
		if strings.HasPrefix(m.message, one.begins) {
			return one.explain(m)
		}
	}
	return m.unreadable()
}

func (m *parserError) unreadable() (string, int) { return "the expression cannot be parsed", m.from }

func (m *parserError) tooLarge() (string, int) { return "the expression has too many parts", m.from }

func (m *parserError) incomplete() (string, int) {
	if open := m.openBracket(); open != nil {
		return fmt.Sprintf("unexpected end of the expression: %q is not closed", open.Value), m.from
	}
	return "unexpected end of the expression", m.from
}

// openBracket returns the innermost bracket that is not closed; nil if all are.
func (m *parserError) openBracket() *lexer.Token {
	var open []*lexer.Token
	for i, token := range m.tokens {
		switch {
		case token.Kind != lexer.Bracket:
		case token.Is(lexer.Bracket, "(", "[", "{"):
			open = append(open, &m.tokens[i])
		case len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open[len(open)-1]
}

var operatorHints = map[string]string{
	"=":  "; to compare, write ==",
	"&":  "; write && or and",
	"::": "; a map is written as {key: value}",
}

func (m *parserError) unexpected() (string, int) {
	return "unexpected " + m.quoted(m.from, m.to) + operatorHints[string(m.text[m.from:m.to])], m.from
}

// maxQuote bounds the characters of an expression that a message quotes.
const maxQuote = 40

// quoted quotes a part of the expression. A string literal already has quotes.
func (m *parserError) quoted(from, to int) string {
	part := m.text[from:to]
	if len(part) > maxQuote {
		part = append(part[:maxQuote:maxQuote], '…')
	}
	if len(part) > 0 && strings.ContainsRune("'\"`", part[0]) {
		return "text " + string(part)
	}
	return strconv.Quote(string(part))
}

func (m *parserError) invalidCharacter() (string, int) {
	character := string(m.text[m.from:m.to])
	message := fmt.Sprintf("unexpected character %q", character)
	if strings.ContainsAny(character, "“”„‘’‚«»") {
		message += "; text is quoted with ' or \""
	}
	return message, m.from
}

func (m *parserError) mixed() (string, int) {
	return fmt.Sprintf("%s and ?? cannot be combined without parentheses around one of them", m.quoted(m.from, m.to)), m.from
}

var parsedNumber = regexp.MustCompile(`parsing ("(?:[^"\\]|\\.)*"): (.*)$`)

func (m *parserError) badNumber() (string, int) {
	match := parsedNumber.FindStringSubmatch(m.message)
	if match == nil {
		return "the number is too large", m.from
	}
	digits, err := strconv.Unquote(match[1])
	if err != nil {
		digits = match[1]
	}
	written, at := digits, m.from
	for _, token := range m.tokens {
		if token.Kind == lexer.Number && strings.ReplaceAll(token.Value, "_", "") == digits {
			written, at = token.Value, token.From
			break
		}
	}
	if len(written) > maxQuote {
		written = written[:maxQuote] + "…"
	}
	if strings.Contains(match[2], "out of range") {
		return fmt.Sprintf("the number %s is too large", written), at
	}
	return fmt.Sprintf("%q is not a number", written), at
}

func (m *parserError) badNumberSyntax() (string, int) {
	from := m.afterTokens()
	return m.quoted(from, m.to) + " is not a number", from
}

// afterTokens returns the position of the first text that is not a token.
func (m *parserError) afterTokens() int {
	at := 0
	if n := len(m.tokens); n > 0 {
		at = m.tokens[n-1].To
	}
	for at < m.from && strings.ContainsRune(" \t\r\n", m.text[at]) {
		at++
	}
	return min(at, m.from)
}

func (m *parserError) tooFewArguments() (string, int) {
	number, _, _ := strings.Cut(strings.TrimPrefix(m.message, "expected at least "), " ")
	if number == "1" {
		return "an argument is missing", m.from
	}
	return fmt.Sprintf("too few arguments: at least %s are needed", number), m.from
}

func (m *parserError) unwrapped() (string, int) {
	return "several expressions in an argument must be inside { and }", m.from
}

func (m *parserError) badKey() (string, int) {
	if m.from == m.to || strings.Contains(m.message, "unexpected token EOF") {
		return m.incomplete()
	}
	return fmt.Sprintf("a map key is a name, a quoted text, a number or an expression in parentheses, not %s", m.quoted(m.from, m.to)), m.from
}

// missingName explains the token before the position that the parser reports.
func (m *parserError) missingName() (string, int) {
	for i := len(m.tokens) - 1; i > 0; i-- {
		dot := m.tokens[i-1]
		if m.tokens[i].From < m.from && (dot.Value == "." || dot.Value == "?.") {
			token := m.tokens[i]
			return fmt.Sprintf("expected a name after %q, not %s", dot.Value, m.quoted(token.From, token.To)), token.From
		}
	}
	return `expected a name after "."`, m.from
}

func (m *parserError) unclosedText() (string, int) {
	return "the text is not closed: a quote is missing", m.afterTokens()
}

func (m *parserError) badEscape() (string, int) {
	return `the text has an escape that does not exist; write \\ for a backslash`, m.from
}

func (m *parserError) unclosedComment() (string, int) {
	return "the comment is not closed: */ is missing", m.afterTokens()
}
