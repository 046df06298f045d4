// Package strictyaml reads and writes the YAML of files that people keep and
// send: it turns a document into the JSON text that strictjson decodes, and a
// JSON text into YAML. It owns the rules for what is acceptable YAML, and knows
// the line and column of everything it read.
//
// The language is YAML 1.2 with its core schema, without the parts that make a
// document mean something other than what it looks like: no anchors, aliases,
// merge keys, tags, directives or complex keys, and one document. So `no` and
// `on` are text, 0777 is a decimal number and 12:30 is no number at all.
//
// What the document means is the business of strictjson and of its callers.
package strictyaml

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Limits on documents. Those that strictjson has too are the same there. The
// number of values bounds the memory for their places, which is a multiple of
// what a small value takes in the text.
const (
	maxBytes       = 4 << 20
	maxValues      = 200_000
	maxDepth       = 64
	maxKeys        = 10_000
	maxElements    = 100_000
	maxKeyBytes    = 1024
	maxNumberBytes = 100
)

// Decode reads exactly one document. What is wrong with it is returned as
// [strictjson.Errors] with one error, whose position is that in the YAML.
func Decode(data []byte) (*Document, error) {
	if len(data) > maxBytes {
		return nil, strictjson.Errors{{
			Kind: strictjson.Shape, Message: "the document is larger than " + strconv.Itoa(maxBytes) + " bytes", Line: 1, Column: 1,
		}}
	}
	p := &parser{src: unifyBreaks(data)}
	p.marked = place{1, 1}
	if !p.characters() || !p.document() {
		return nil, strictjson.Errors{p.err}
	}
	return &Document{JSON: p.out, entries: p.entries}, nil
}

// unifyBreaks makes every line break a line feed, as YAML says they are read.
func unifyBreaks(data []byte) []byte {
	if bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
}

// parser makes one pass over a document. Its methods report whether to go on;
// when they do not, err says why.
//
// Blocks are told apart by their indentation: parent is always the column of
// the block around a value, -1 at the top. Columns in this sense count from 0.
type parser struct {
	src   []byte
	pos   int
	begin int // where the line of pos begins

	out     []byte
	entries []entry
	stack   []frame
	err     *strictjson.Error

	// marked is the place of the offset markedAt: places are asked for in
	// the order of the document.
	markedAt int
	marked   place
}

// frame is an open mapping or sequence.
type frame struct {
	entry  int
	closer byte
	count  int
	inside bool                // of a value, not between two
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
	return p.syntax(p.pos, "this line does not belong to what stands before it: check its indentation")
}

// syntax ends the reading at an offset.
func (p *parser) syntax(at int, message string) bool {
	return p.fail(strictjson.Syntax, at, message)
}

// refuse ends it with something that is well-formed, but too much.
func (p *parser) refuse(at int, message string) bool {
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

// pointer leads to the value that is being read.
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

// lineOf is the number of the line of an offset, for messages.
func (p *parser) lineOf(at int) string {
	return strconv.Itoa(bytes.Count(p.src[:at], []byte("\n")) + 1)
}
