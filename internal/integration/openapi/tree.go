package openapi

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/strictjson"
)

type nodeKind uint8

const (
	kindNull nodeKind = iota
	kindBoolean
	kindNumber
	kindText
	kindList
	kindObject
)

// node is a value of a document. A missing one is nil, which has no members.
type node struct {
	kind   nodeKind
	text   string // of a text or a number, or true
	items  []*node
	name   string // of a member
	parent *node
	index  map[string]*node // of an object with many members
}

const indexFrom = 12

// buildTree decodes JSON that was checked before.
func buildTree(data []byte) (*node, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	b := &treeBuilder{tokens: d}
	return b.value(nil)
}

type treeBuilder struct {
	tokens *json.Decoder
	count  int
}

func (b *treeBuilder) value(parent *node) (*node, error) {
	token, err := b.tokens.Token()
	if err != nil {
		return nil, err
	}
	if b.count++; b.count > maxValues {
		return nil, strictjson.Errors{{Kind: strictjson.Shape, Message: "the document has more than " + strconv.Itoa(maxValues) + " values", Line: 1, Column: 1}}
	}
	n := &node{parent: parent}
	switch token := token.(type) {
	case json.Delim:
		return n, b.fill(n, token)
	case string:
		n.kind, n.text = kindText, token
	case json.Number:
		n.kind, n.text = kindNumber, token.String()
	case bool:
		n.kind = kindBoolean
		if token {
			n.text = "true"
		}
	}
	return n, nil
}

// fill reads the members of an object or the elements of a list.
func (b *treeBuilder) fill(n *node, opener json.Delim) error {
	n.kind = kindList
	if opener == '{' {
		n.kind = kindObject
	}
	for b.tokens.More() {
		name := ""
		if n.kind == kindObject {
			key, err := b.tokens.Token()
			if err != nil {
				return err
			}
			name, _ = key.(string)
		}
		item, err := b.value(n)
		if err != nil {
			return err
		}
		item.name = name
		n.items = append(n.items, item)
	}
	if n.kind == kindObject && len(n.items) >= indexFrom {
		n.index = make(map[string]*node, len(n.items))
		for _, item := range n.items {
			n.index[item.name] = item
		}
	}
	_, err := b.tokens.Token()
	return err
}

// get returns a member, nil if there is none.
func (n *node) get(name string) *node {
	switch {
	case n == nil || n.kind != kindObject:
		return nil
	case n.index != nil:
		return n.index[name]
	}
	for _, item := range n.items {
		if item.name == name {
			return item
		}
	}
	return nil
}

func (n *node) list() []*node {
	if n == nil || n.kind != kindList {
		return nil
	}
	return n.items
}

func (n *node) members() []*node {
	if n == nil || n.kind != kindObject {
		return nil
	}
	return n.items
}

// string returns a text; "" if it is something else.
func (n *node) string() string {
	if n == nil || n.kind != kindText {
		return ""
	}
	return n.text
}

func (n *node) isTrue() bool { return n != nil && n.kind == kindBoolean && n.text != "" }

// number returns a number, nil if it is something else.
func (n *node) number() *float64 {
	if n == nil || n.kind != kindNumber {
		return nil
	}
	value, err := strconv.ParseFloat(n.text, 64)
	if err != nil {
		return nil
	}
	return &value
}

func (n *node) pointer() string {
	if n == nil || n.parent == nil {
		return ""
	}
	name := n.name
	if n.parent.kind == kindList {
		for i, item := range n.parent.items {
			if item == n {
				name = strconv.Itoa(i)
			}
		}
	}
	return n.parent.pointer() + jsonpointer.Of(name)
}

// isLarge reports whether a value is too large for a default, an example or a choice.
func (n *node) isLarge() bool {
	left := maxSample
	var count func(n *node)
	count = func(n *node) {
		if left -= 1 + len(n.text) + len(n.name); left < 0 {
			return
		}
		for _, item := range n.items {
			if count(item); left < 0 {
				return
			}
		}
	}
	count(n)
	return left < 0
}

// json returns the value as decoding JSON does.
func (n *node) json() any {
	switch n.kind {
	case kindBoolean:
		return n.text != ""
	case kindNumber:
		value, err := strictjson.DecodeAny([]byte(n.text))
		if err != nil {
			return nil
		}
		return value
	case kindText:
		return n.text
	case kindList:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = item.json()
		}
		return out
	case kindObject:
		out := make(map[string]any, len(n.items))
		for _, item := range n.items {
			out[item.name] = item.json()
		}
		return out
	}
	return nil
}
