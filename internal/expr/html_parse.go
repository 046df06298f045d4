package expr

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxHTMLDepth = 512 // open elements, as in browsers
	elementBytes = 128 // memory of one element
)

// htmlDocument has the elements of HTML text in their order.
//
// It is not the tree that package html builds: repairing wrongly nested text can
// make that tree larger than any multiple of the text, before its size is known.
// Here, every start tag is one element. Elements whose end tags may be omitted end
// where they do in browsers, and wrong end tags are ignored.
type htmlDocument struct {
	source   string
	text     string // of all elements
	elements []htmlElement
	top      int // number of elements without a parent
}

type htmlElement struct {
	tag        string
	attributes []htmlAttribute // the first one of a name counts
	parent     int             // index, -1 for none
	previous   int             // index of the sibling before, -1 for none
	position   int             // among its siblings, from 1
	children   int
	begin, end int // of its content in the source
	from, to   int // of its text
}

type htmlAttribute struct{ name, value string }

func (e *htmlElement) attribute(name string) (string, bool) {
	for _, a := range e.attributes {
		if a.name == name {
			return a.value, true
		}
	}
	return "", false
}

// openElement is an element that has not ended.
type openElement struct {
	index int
	last  int // index of its last child, -1 for none
}

type htmlParser struct {
	m    *evaluation
	doc  *htmlDocument
	at   int // position in the source
	open []openElement
	tags map[string]int // the number of open elements
	last int            // index of the last element without a parent, -1 for none
	text htmlText
}

func (m *evaluation) parseHTML(source string) (*htmlDocument, error) {
	if err := m.write(4<<10 + 3*len(source)); err != nil {
		return nil, err
	}
	if err := m.spend(len(source) / 2); err != nil {
		return nil, err
	}
	// Memory for the elements is allocated at once, because growing would copy it.
	tags := strings.Count(source, "<") - strings.Count(source, "</")
	if err := m.grow(tags * elementBytes); err != nil {
		return nil, err
	}
	doc := &htmlDocument{source: source, elements: make([]htmlElement, 0, tags)}
	p := &htmlParser{m: m, doc: doc, tags: map[string]int{}, last: -1}
	z := html.NewTokenizer(strings.NewReader(source))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		if err := m.spend(4); err != nil {
			return nil, err
		}
		begin := p.at
		p.at += len(z.Raw())
		if err := p.take(kind, z, begin); err != nil {
			return nil, err
		}
	}
	p.closeTo(0, len(source))
	doc.text = p.text.b.String()
	return doc, nil
}

func (p *htmlParser) take(kind html.TokenType, z *html.Tokenizer, begin int) error {
	switch kind {
	case html.TextToken:
		return p.text.add(p.m, string(z.Text()))
	case html.StartTagToken, html.SelfClosingTagToken:
		return p.start(kind == html.SelfClosingTagToken, z, begin)
	case html.EndTagToken:
		name, _ := z.TagName()
		return p.finish(atom.String(name), begin)
	}
	return nil
}

func (p *htmlParser) start(selfClosing bool, z *html.Tokenizer, begin int) error {
	name, more := z.TagName()
	tag := atom.String(name)
	if err := p.closeImplied(tag, begin); err != nil {
		return err
	}
	if tag == "tr" && p.isIn("table") {
		if err := p.push("tbody", nil, begin); err != nil {
			return err
		}
	}
	if (tag == "td" || tag == "th") && p.isIn("tbody", "thead", "tfoot") {
		if err := p.push("tr", nil, begin); err != nil {
			return err
		}
	}
	var attributes []htmlAttribute
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if err := p.m.grow(4*weightElement + 2*weightBoxed + len(key) + len(value)); err != nil {
			return err
		}
		attributes = append(attributes, htmlAttribute{atom.String(key), string(value)})
	}
	foreign := p.tags["svg"]+p.tags["math"] > 0
	if err := p.push(tag, attributes, p.at); err != nil {
		return err
	}
	if voidTags[tag] || selfClosing && foreign {
		p.closeTo(len(p.open)-1, p.at)
	}
	return nil
}

func (p *htmlParser) push(tag string, attributes []htmlAttribute, begin int) error {
	if len(p.open) >= maxHTMLDepth {
		return failf("the HTML is nested too deeply")
	}
	if len(p.doc.elements) == cap(p.doc.elements) {
		if err := p.m.grow(2 * elementBytes * (1 + len(p.doc.elements))); err != nil {
			return err
		}
	}
	p.text.breakAt(tag)
	index := len(p.doc.elements)
	e := htmlElement{tag: tag, attributes: attributes, parent: -1, previous: p.last, begin: begin, from: p.text.b.Len()}
	if n := len(p.open); n > 0 {
		parent := &p.open[n-1]
		e.parent, e.previous, parent.last = parent.index, parent.last, index
		p.doc.elements[e.parent].children++
		e.position = p.doc.elements[e.parent].children
	} else {
		p.last = index
		p.doc.top++
		e.position = p.doc.top
	}
	p.doc.elements = append(p.doc.elements, e)
	p.open = append(p.open, openElement{index: index, last: -1})
	p.tags[tag]++
	p.text.enter(tag)
	return nil
}

// closeTo ends the open elements from n on, at a position of the source.
func (p *htmlParser) closeTo(n, at int) {
	for len(p.open) > n {
		e := &p.doc.elements[p.open[len(p.open)-1].index]
		p.open = p.open[:len(p.open)-1]
		p.tags[e.tag]--
		p.text.leave(e.tag)
		e.end, e.to = max(at, e.begin), p.text.b.Len()
		p.text.breakAt(e.tag)
	}
}

// finish ends the element that an end tag belongs to, if there is one.
func (p *htmlParser) finish(tag string, at int) error {
	scope := specialTags
	switch {
	case tableTags[tag]:
		scope = tableScope
	case tag == "p":
		scope = buttonScope
	case specialTags[tag]:
		scope = cellScope
	}
	return p.closeNearest(at, scope, tag)
}

// closeNearest ends the innermost of the open elements with one of the tags, and
// everything in it, unless a tag of the scope is in between.
func (p *htmlParser) closeNearest(at int, scope map[string]bool, tags ...string) error {
	if !slices.ContainsFunc(tags, func(tag string) bool { return p.tags[tag] > 0 }) {
		return nil
	}
	for i, open := range slices.Backward(p.open) {
		if err := p.m.spend(1); err != nil {
			return err
		}
		tag := p.doc.elements[open.index].tag
		if slices.Contains(tags, tag) {
			p.closeTo(i, at)
			return nil
		}
		if scope[tag] {
			return nil
		}
	}
	return nil
}

// closeImplied ends the elements that end where another one begins.
func (p *htmlParser) closeImplied(tag string, at int) error {
	switch tag {
	case "li":
		if err := p.closeNearest(at, itemScope, "li"); err != nil {
			return err
		}
	case "dt", "dd":
		if err := p.closeNearest(at, itemScope, "dt", "dd"); err != nil {
			return err
		}
	case "td", "th":
		return p.closeNearest(at, tableScope, "td", "th")
	case "tr":
		return p.closeNearest(at, tableScope, "tr", "caption", "colgroup")
	case "caption", "colgroup", "tbody", "thead", "tfoot":
		return p.closeNearest(at, tableScope, "caption", "colgroup", "tbody", "thead", "tfoot")
	case "option":
		return p.closeNearest(at, specialTags, "option")
	case "optgroup":
		if err := p.closeNearest(at, specialTags, "option"); err != nil {
			return err
		}
		return p.closeNearest(at, specialTags, "optgroup")
	case "a":
		return p.closeNearest(at, specialTags, "a")
	case "body":
		return p.closeNearest(at, nil, "head")
	}
	if blockTags[tag] {
		return p.closeNearest(at, buttonScope, "p")
	}
	return nil
}

// isIn reports whether the innermost open element has one of the tags.
func (p *htmlParser) isIn(tags ...string) bool {
	return len(p.open) > 0 && slices.Contains(tags, p.doc.elements[p.open[len(p.open)-1].index].tag)
}
