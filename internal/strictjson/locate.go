package strictjson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Place is a position in a document. The zero value means no position.
type Place struct {
	Line   int // from 1
	Column int // in characters, from 1
}

// Locate returns the positions of the values that JSON pointers refer to in a
// well-formed document. For a pointer without a value it returns the position of
// the innermost existing value on its path.
func Locate(document []byte, pointers []string) []Place {
	l := &locator{
		document: document, decoder: json.NewDecoder(bytes.NewReader(document)),
		line: 1, column: 1, places: make([]Place, len(pointers)),
	}
	root := &pointerNode{}
	for i, pointer := range pointers {
		at := root
		if pointer != "" {
			for member := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
				at = at.add(unescapePointer.Replace(member))
			}
		}
		at.pointers = append(at.pointers, i)
	}
	l.value(root)
	return l.places
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// pointerNode is a node in the tree of all pointers to look for.
type pointerNode struct {
	members  map[string]*pointerNode
	pointers []int
}

func (w *pointerNode) add(member string) *pointerNode {
	if w.members == nil {
		w.members = map[string]*pointerNode{}
	}
	if w.members[member] == nil {
		w.members[member] = &pointerNode{}
	}
	return w.members[member]
}

// member returns nil if no pointer leads through the member.
func (w *pointerNode) member(name string) *pointerNode {
	if w == nil {
		return nil
	}
	return w.members[name]
}

// locator finds positions in one pass over a document.
type locator struct {
	document     []byte
	decoder      *json.Decoder
	places       []Place
	at           int // the offset of line and column
	line, column int
}

// value reads the next value and reports whether there was one.
func (l *locator) value(w *pointerNode) bool {
	if w != nil {
		l.assign(w, l.next())
	}
	token, err := l.decoder.Token()
	if err != nil {
		return false
	}
	switch token {
	case json.Delim('{'):
		for l.decoder.More() {
			name, err := l.decoder.Token()
			if err != nil {
				return false
			}
			key, _ := name.(string)
			if !l.value(w.member(key)) {
				return false
			}
		}
		_, err = l.decoder.Token()
	case json.Delim('['):
		for i := 0; l.decoder.More(); i++ {
			if !l.value(w.member(strconv.Itoa(i))) {
				return false
			}
		}
		_, err = l.decoder.Token()
	}
	return err == nil
}

// assign sets the position of the pointers that end here, and of longer ones
// until a more deeply nested value is found.
func (l *locator) assign(w *pointerNode, at Place) {
	for _, i := range w.pointers {
		l.places[i] = at
	}
	for _, inner := range w.members {
		l.assign(inner, at)
	}
}

func (l *locator) next() Place {
	offset := int(l.decoder.InputOffset())
	for offset < len(l.document) && bytes.IndexByte([]byte(" \t\r\n,:"), l.document[offset]) >= 0 {
		offset++
	}
	between := l.document[l.at:offset]
	if breaks := bytes.Count(between, []byte("\n")); breaks > 0 {
		l.line += breaks
		l.column = 1
		between = between[bytes.LastIndexByte(between, '\n')+1:]
	}
	l.column += utf8.RuneCount(between)
	l.at = offset
	return Place{l.line, l.column}
}
