// Package strictyaml converts YAML to JSON, which strictjson decodes, and JSON to
// YAML. It owns the rules for acceptable YAML, and knows the line and column of
// every value.
//
// The language is YAML 1.2 with its core schema, without the parts that make a
// document mean something other than what it looks like: no anchors, aliases,
// merge keys, tags, directives or complex keys, and one document. So `no` and
// `on` are text, 0777 is a decimal number and 12:30 is no number at all.
//
// The meaning of a document is up to strictjson and the callers.
package strictyaml

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Limits on documents. Limits that strictjson also has are the same there.
const (
	maxDepth       = 64
	maxKeys        = 10_000
	maxElements    = 100_000
	maxKeyBytes    = 1024
	maxNumberBytes = 100
)

// Limits bounds the size of a document. The number of values bounds the memory for their
// positions, which need several times as much memory as small values.
type Limits struct {
	Bytes  int
	Values int
}

// DefaultLimits returns the limits of [Decode].
func DefaultLimits() Limits { return Limits{Bytes: 4 << 20, Values: 200_000} }

// Decode decodes exactly one document. If it is not acceptable, Decode returns
// [strictjson.Errors] with one error and its position in the YAML.
func Decode(data []byte) (*Document, error) { return DecodeWithin(data, DefaultLimits()) }

// DecodeWithin is like Decode with other limits.
func DecodeWithin(data []byte, limits Limits) (*Document, error) {
	if len(data) > limits.Bytes {
		return nil, strictjson.Errors{{
			Kind: strictjson.Shape, Message: "the document is larger than " + strconv.Itoa(limits.Bytes) + " bytes", Line: 1, Column: 1,
		}}
	}
	p := &parser{src: normalizeBreaks(data), maxValues: limits.Values}
	p.marked = place{1, 1}
	if !p.checkCharacters() || !p.document() {
		return nil, asErrors(p.err)
	}
	return &Document{JSON: p.out, entries: p.entries}, nil
}

func asErrors(err *strictjson.Error) error { return strictjson.Errors{err} }

// normalizeBreaks converts every line break to a line feed, as YAML specifies.
func normalizeBreaks(data []byte) []byte {
	if bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
}

// parser makes one pass over a document. Its methods report whether to continue;
// if not, err is the reason.
//
// Blocks are delimited by indentation: parent is always the column of the block
// around a value, -1 at the top level. These columns count from 0.
type parser struct {
	src       []byte
	pos       int
	begin     int // start of the line of pos
	maxValues int

	out     []byte
	entries []entry
	stack   []frame
	err     *strictjson.Error
	// hiding is the offset of the last comment between brackets that has a closing one.
	hiding int

	// markedAt is an offset and marked its position, cached because positions are
	// computed in document order.
	markedAt int
	marked   place

	// replace is set to substitute strings. Then edits are the changes of the text,
	// and replaceErr is the error of replace that ended the parse.
	replace    Replace
	edits      []edit
	replaceErr error
}

type frame struct {
	entry  int
	closer byte
	count  int
	inside bool                // within a value, not between two values
	flow   bool                // in brackets
	key    string              // of that value
	keys   []string            // of a mapping, while they are few
	seen   map[string]struct{} // of a mapping with many keys
}

func (p *parser) document() bool {
	if !p.next() {
		return false
	}
	if p.at('%') && p.column() == 0 {
		return p.syntax(p.pos, "directives are not allowed")
	}
	if p.marker("---") {
		p.pos += len("---")
		if !p.endLine() || !p.next() {
			return false
		}
	}
	if p.ended() {
		return p.syntax(p.pos, "the document is empty")
	}
	if !p.block(-1) {
		return false
	}
	if p.marker("...") {
		p.pos += len("...")
		if !p.endLine() || !p.next() {
			return false
		}
	}
	switch {
	case p.pos == len(p.src):
		return true
	case p.marker("---"), p.marker("..."):
		return p.syntax(p.pos, "there is more than one document")
	}
	return p.syntax(p.pos, "this line does not belong to the block before it: check its indentation")
}

// syntax stops with a Syntax error at an offset.
func (p *parser) syntax(at int, message string) bool {
	return p.fail(strictjson.Syntax, at, message)
}

// abort stops with a Shape error, for documents that exceed a limit.
func (p *parser) abort(at int, message string) bool {
	return p.fail(strictjson.Shape, at, message)
}

func (p *parser) fail(kind strictjson.Kind, at int, message string) bool {
	before := p.src[:at]
	start := bytes.LastIndexByte(before, '\n') + 1
	p.err = &strictjson.Error{
		Kind: kind, Pointer: p.pointer(), Message: message,
		Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(before[start:]) + 1,
	}
	return false
}

func (p *parser) pointer() string {
	var members []string
	for _, f := range p.stack {
		switch {
		case f.inside && f.closer == ']':
			members = append(members, strconv.Itoa(f.count-1))
		case f.inside:
			members = append(members, f.key)
		}
	}
	return jsonpointer.Of(members...)
}

// lineOf returns the line number of an offset, for messages.
func (p *parser) lineOf(at int) string {
	return strconv.Itoa(bytes.Count(p.src[:at], []byte("\n")) + 1)
}
