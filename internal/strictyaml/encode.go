package strictyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// Encode converts a JSON document to YAML in block style. It preserves the order
// of keys and the digits of numbers, so that Decode returns the same document.
// Strings are quoted where a YAML 1.1 parser would not read them as strings.
func Encode(document []byte) ([]byte, error) {
	if err := strictjson.Check(document); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	e := encoder{tokens: d}
	if err := e.value(0); err != nil {
		return nil, fmt.Errorf("encode as YAML: %w", err)
	}
	return e.out, nil
}

type encoder struct {
	tokens *json.Decoder
	out    []byte
}

// value writes the next value and ends the line. Nested values are indented to
// the given column. The current line has at most a key or a dash, without a space
// after it.
func (e *encoder) value(column int) error {
	token, err := e.tokens.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		if !e.tokens.More() {
			_, err := e.tokens.Token()
			e.word(map[json.Delim]string{'{': "{}", '[': "[]"}[token])
			return err
		}
		if token == '{' {
			return e.members(column)
		}
		return e.elements(column)
	case string:
		e.text(token, column)
	case json.Number:
		e.word(token.String())
	case bool:
		e.word(fmt.Sprint(token))
	case nil:
		e.word("null")
	}
	return nil
}

// word writes a word and ends the line.
func (e *encoder) word(word string) {
	e.space()
	e.out = append(append(e.out, word...), '\n')
}

// space separates a value from the key or dash before it.
func (e *encoder) space() {
	if n := len(e.out); n > 0 && e.out[n-1] != '\n' {
		e.out = append(e.out, ' ')
	}
}

// members writes a mapping: below a key, or next to a dash.
func (e *encoder) members(column int) error {
	for e.begin(); e.tokens.More(); {
		key, err := e.tokens.Token()
		if err != nil {
			return err
		}
		e.indent(column)
		e.out = append(append(e.out, oneLine(key.(string))...), ':')
		if err := e.value(column + indentStep); err != nil {
			return err
		}
	}
	_, err := e.tokens.Token()
	return err
}

// elements writes a sequence: below a key, or next to a dash.
func (e *encoder) elements(column int) error {
	for e.begin(); e.tokens.More(); {
		e.indent(column)
		e.out = append(e.out, '-')
		if err := e.value(column + indentStep); err != nil {
			return err
		}
	}
	_, err := e.tokens.Token()
	return err
}

// indentStep is the indentation of a nested value. It must equal the width of a
// dash with its space.
const indentStep = 2

// begin starts a block: after a key on the next line, after a dash on the same
// line.
func (e *encoder) begin() {
	if bytes.HasSuffix(e.out, []byte(":")) {
		e.out = append(e.out, '\n')
	}
	e.space()
}

// indent indents the line to a column, if it is empty.
func (e *encoder) indent(column int) {
	if n := len(e.out); n == 0 || e.out[n-1] == '\n' {
		e.out = append(e.out, strings.Repeat(" ", column)...)
	}
}

// text writes a string: plain, as a literal block, or in quotes.
func (e *encoder) text(text string, column int) {
	if isPlain(text) || !isLiteral(text) {
		e.word(oneLine(text))
		return
	}
	e.space()
	e.out = append(e.out, '|')
	if strings.ContainsAny(text[:1], " \t\n") {
		e.out = append(e.out, '0'+indentStep) // the first line does not show the indentation
	}
	body, ends := strings.CutSuffix(text, "\n")
	switch {
	case !ends:
		e.out = append(e.out, '-')
	case strings.HasSuffix(body, "\n"):
		e.out = append(e.out, '+')
	}
	e.out = append(e.out, '\n')
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			e.indent(max(indentStep, column))
			e.out = append(e.out, line...)
		}
		e.out = append(e.out, '\n')
	}
}
