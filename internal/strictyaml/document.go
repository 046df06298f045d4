package strictyaml

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Document is what was read.
type Document struct {
	// JSON has the keys in the order of the document, and numbers with the
	// digits that they had.
	JSON    []byte
	entries []entry
}

// entry is a value. Entries stand in the order of the document; those inside
// a value follow it, up to its end.
type entry struct {
	key   string // in a mapping
	keyAt place
	at    place
	end   int32
}

// place is a line and a column in characters, both from 1.
type place struct{ line, column int32 }

// At is the position of the value that a JSON pointer leads to, or else of the
// innermost value around it that is there. It is not ok when the pointer is
// none.
func (d *Document) At(pointer string) (line, column int, ok bool) {
	found, _, ok := d.find(pointer)
	if !ok {
		return 0, 0, false
	}
	at := d.entries[found].at
	return int(at.line), int(at.column), true
}

// KeyAt is the position of the key of a member. Where there is no such key it
// is what At says.
func (d *Document) KeyAt(pointer string) (line, column int, ok bool) {
	found, exact, ok := d.find(pointer)
	if ok && exact && d.entries[found].keyAt.line > 0 {
		at := d.entries[found].keyAt
		return int(at.line), int(at.column), true
	}
	return d.At(pointer)
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// find follows a pointer as far as it leads.
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

// child is the entry of a member or an element, -1 if there is none.
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

// mark is the place of an offset.
func (p *parser) mark(at int) place {
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
