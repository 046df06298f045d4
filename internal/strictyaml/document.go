package strictyaml

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Document is a decoded document.
type Document struct {
	// JSON is the document as JSON, with the original order of keys and the
	// original digits of numbers.
	JSON    []byte
	entries []entry
}

// entry is a value. Entries are in document order; those inside a value follow
// it, up to its end index.
type entry struct {
	key   string // in a mapping
	keyAt place
	at    place
	end   int32
}

// place is a line and a column in characters, both from 1.
type place struct{ line, column int32 }

// At returns the position of the value that a JSON pointer refers to, or of the
// innermost existing value on its path. It reports false if the pointer is not
// valid.
func (d *Document) At(pointer string) (line, column int, ok bool) {
	found, _, ok := d.find(pointer)
	if !ok {
		return 0, 0, false
	}
	at := d.entries[found].at
	return int(at.line), int(at.column), true
}

// KeyAt returns the position of the key of a member. If there is no such key, it
// returns the result of At.
func (d *Document) KeyAt(pointer string) (line, column int, ok bool) {
	found, exact, ok := d.find(pointer)
	if ok && exact && d.entries[found].keyAt.line > 0 {
		at := d.entries[found].keyAt
		return int(at.line), int(at.column), true
	}
	return d.At(pointer)
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// find follows a pointer as far as the document has values.
func (d *Document) find(pointer string) (found int, exact, ok bool) {
	if len(d.entries) == 0 || pointer != "" && pointer[0] != '/' {
		return 0, false, false
	}
	if pointer == "" {
		return 0, true, true
	}
	for member := range strings.SplitSeq(pointer[1:], "/") {
		inner := d.child(found, unescape.Replace(member))
		if inner < 0 {
			return found, false, true
		}
		found = inner
	}
	return found, true, true
}

// child returns the entry of a member or an element, -1 if there is none.
func (d *Document) child(parent int, member string) int {
	n := 0
	for i := parent + 1; i < int(d.entries[parent].end); i = int(d.entries[i].end) {
		if e := d.entries[i]; e.keyAt.line > 0 && e.key == member || e.keyAt.line == 0 && strconv.Itoa(n) == member {
			return i
		}
		n++
	}
	return -1
}

// placeOf returns the position of an offset.
func (p *parser) placeOf(at int) place {
	if at < p.markedAt {
		p.markedAt, p.marked = 0, place{1, 1}
	}
	between := p.src[p.markedAt:at]
	if breaks := bytes.Count(between, []byte("\n")); breaks > 0 {
		p.marked.line += int32(breaks)
		p.marked.column = 1
		between = between[bytes.LastIndexByte(between, '\n')+1:]
	}
	p.marked.column += int32(utf8.RuneCount(between))
	p.markedAt = at
	return p.marked
}
