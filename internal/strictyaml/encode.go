package strictyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// Encode writes a JSON document as YAML: in block style, with the keys in their
// order and numbers as they were written, so that Decode reads the same document
// from it. Text is written so that it is text to readers of YAML 1.1 as well.
func Encode(document []byte) ([]byte, error) {
	if err := strictjson.Check(document); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	e := encoder{tokens: d}
	if err := e.value(0); err != nil {
		return nil, fmt.Errorf("write as YAML: %w", err)
	}
	return e.out, nil
}

type encoder struct {
	tokens *json.Decoder
	out    []byte
}

// value writes what comes next and ends the line. What is inside of it stands
// at the given column; on the current line there is only what leads to it, such
// as a key or a dash, without a space behind it.
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

// word ends the line with a word.
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

// members writes a mapping: under a key, or beside a dash.
func (e *encoder) members(column int) error {
	for e.begin(); e.tokens.More(); {
		key, err := e.tokens.Token()
		if err != nil {
			return err
		}
		e.indent(column)
		e.out = append(append(e.out, oneLine(key.(string))...), ':')
		if err := e.value(column + step); err != nil {
			return err
		}
	}
	_, err := e.tokens.Token()
	return err
}

// elements writes a sequence: under a key, or beside a dash.
func (e *encoder) elements(column int) error {
	for e.begin(); e.tokens.More(); {
		e.indent(column)
		e.out = append(e.out, '-')
		if err := e.value(column + step); err != nil {
			return err
		}
	}
	_, err := e.tokens.Token()
	return err
}

// step is how much further a value stands than what it belongs to. It is the
// width of a dash with its space, too.
const step = 2

// begin starts a block: behind a key on the next line, behind a dash on the
// same.
func (e *encoder) begin() {
	if bytes.HasSuffix(e.out, []byte(":")) {
		e.out = append(e.out, '\n')
	}
	e.space()
}

// indent moves to a column, if the line is still empty.
func (e *encoder) indent(column int) {
	if n := len(e.out); n == 0 || e.out[n-1] == '\n' {
		e.out = append(e.out, strings.Repeat(" ", column)...)
	}
}

// text writes text: as it is, as a block of lines, or in quotes.
func (e *encoder) text(text string, column int) {
	if isPlain(text) || !isLiteral(text) {
		e.word(oneLine(text))
		return
	}
	e.space()
	e.out = append(e.out, '|')
	if strings.ContainsAny(text[:1], " \t\n") {
		e.out = append(e.out, '0'+step) // the first line does not tell the indentation
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
			e.indent(max(step, column))
			e.out = append(e.out, line...)
		}
		e.out = append(e.out, '\n')
	}
}
