package strictyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// Replace returns the value that takes the place of a string at a JSON pointer: a
// string, a [json.Number], a bool or nil. It reports false to keep the string.
type Replace func(pointer, text string) (value any, replaced bool, err error)

// Substitute replaces strings of a document. Everything else, such as comments, keys
// and the order of members, stays as it is written. A replacement is always a value of
// its own: whatever it contains, it cannot change the structure of the document.
func Substitute(data []byte, replace Replace) ([]byte, error) {
	p := &parser{src: normalizeBreaks(data), marked: place{1, 1}, maxValues: DefaultLimits().Values, replace: replace}
	if !p.checkCharacters() || !p.document() {
		if p.replaceErr != nil {
			return nil, p.replaceErr
		}
		return nil, asErrors(p.err)
	}
	var out []byte
	last := 0
	for _, e := range p.edits {
		out = append(append(out, p.src[last:e.from]...), e.text...)
		last = e.to
	}
	out = append(out, p.src[last:]...)
	document, err := Decode(out)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(document.JSON, p.out) {
		return nil, errors.New("strictyaml: a substitution changed more than its value")
	}
	return out, nil
}

type edit struct {
	from, to int
	text     string
}

// substitute writes the replacement of a string, if there is one.
func (p *parser) substitute(at int, text []byte) (done, ok bool) {
	value, replaced, err := p.replace(p.pointer(), string(text))
	if err != nil || !replaced {
		p.replaceErr = err
		return false, err == nil
	}
	e := edit{from: at, to: p.pos}
	if c := p.src[at]; c == '|' || c == '>' { // up to its last line that is not empty
		e.to = at + len(bytes.TrimRight(p.src[at:p.pos], " \n"))
	}
	switch v := value.(type) {
	case string:
		e.text = p.scalarText(v, e)
		p.out = appendText(p.out, v)
	case json.Number:
		e.text = v.String()
		p.out = append(p.out, e.text...)
	case bool:
		e.text = strconv.FormatBool(v)
		p.out = append(p.out, e.text...)
	default:
		e.text = "null"
		p.out = append(p.out, e.text...)
	}
	p.edits = append(p.edits, e)
	return true, true
}

// innerColumn returns the column of lines inside the value at an offset.
func (p *parser) innerColumn(at int) int {
	if key := p.entries[len(p.entries)-1].keyAt; key.line > 0 {
		return int(key.column) - 1 + indentStep
	}
	return int(p.placeOf(at).column) - 1
}

// scalarText returns a string as it is written in place of an edit: as a block only if
// the rest of its line is empty.
func (p *parser) scalarText(text string, e edit) string {
	rest, _, _ := bytes.Cut(p.src[e.to:], []byte("\n"))
	switch {
	case len(p.stack) > 0 && p.stack[len(p.stack)-1].flow:
		if isPlain(text) && !strings.ContainsAny(text, ",[]{}") {
			return text
		}
		return doubleQuoted(text)
	case len(bytes.TrimSpace(rest)) > 0:
		return oneLine(text)
	case strings.HasSuffix(text, "\n\n"): // a block would include the empty lines that follow it
		return doubleQuoted(text)
	}
	written := encoder{out: []byte("\n")}
	written.text(text, p.innerColumn(e.from))
	return string(bytes.TrimSuffix(written.out[1:], []byte("\n")))
}
