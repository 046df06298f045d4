package expr

import "strings"

func htmlFunctions() []function {
	const page = `<ul id=\"menu\"><li><a href=\"/a\">One</a><li><a href=\"/b\">Two</a></ul>`
	return []function{
		withSelector(fn("htmlFind", "htmlFind(text, selector) map", "The first element of HTML text that a CSS selector matches, nil if there is none: its tag, its text, its content as html, and its attributes as a map. In the text, spaces are joined, blocks are on lines of their own, and scripts and styles are left out.", 2, 2, finder(findHTML).first,
			`htmlFind("<p class=\"price big\">Total: <b>12&nbsp;€</b></p>", "p.price > b").text`, "\"12\u00a0€\"",
			`htmlFind("`+page+`", "#menu li:nth-child(2) a")`, `{"attributes":{"href":"/b"},"html":"Two","tag":"a","text":"Two"}`)),
		withSelector(fn("htmlFindAll", "htmlFindAll(text, selector[, limit]) array", "All elements of HTML text that a CSS selector matches, at most limit, each as htmlFind returns it.", 2, 3, finder(findHTML).all,
			`map(htmlFindAll("`+page+`", "a[href^=\"/\"]"), .attributes.href)`, `["/a","/b"]`)),
		fn("htmlText", "htmlText(text) string", "The text of HTML without its tags, as htmlFind returns it.", 1, 1, plainText,
			`htmlText("<h1>Hi</h1><p>Fish &amp;\n chips<br>to go</p>")`, `"Hi\nFish & chips\nto go"`),
	}
}

// withSelector marks a function whose second argument is a CSS selector. If it is a
// literal, it is compiled with the expression.
func withSelector(f function) function {
	f.selector = true
	return f
}

// cssSelector returns argument 2, a CSS selector.
func (a args) cssSelector(m *evaluation) (*selector, error) {
	if a.selector != nil {
		return a.selector, nil
	}
	text, err := a.text(1)
	if err != nil {
		return nil, err
	}
	if err := m.write(16 * min(len(text), maxSelector)); err != nil {
		return nil, err
	}
	return compileSelector(text)
}

// findHTML is a finder of elements, as maps.
func findHTML(m *evaluation, a args, limit int) ([]any, error) {
	source, err := a.text(0)
	if err != nil {
		return nil, err
	}
	s, err := a.cssSelector(m)
	if err != nil {
		return nil, err
	}
	doc, err := m.parseHTML(source)
	if err != nil {
		return nil, err
	}
	matches, err := doc.find(m, s, limit)
	if err != nil {
		return nil, err
	}
	out, err := m.newList(len(matches))
	if err != nil {
		return nil, err
	}
	for i, index := range matches {
		if out[i], err = doc.object(m, &doc.elements[index]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// object returns an element as a map. Its text and html are parts of longer strings,
// so they need no memory.
func (d *htmlDocument) object(m *evaluation, e *htmlElement) (any, error) {
	if err := m.growObject(len(e.attributes)); err != nil {
		return nil, err
	}
	if err := m.grow(weightObject + (4+len(e.attributes))*weightBoxed); err != nil {
		return nil, err
	}
	if err := m.spend(4 + len(e.attributes)); err != nil {
		return nil, err
	}
	attributes := map[string]any{}
	for _, one := range e.attributes {
		if _, ok := attributes[one.name]; !ok {
			attributes[one.name] = one.value
		}
	}
	return map[string]any{
		"tag": e.tag, "text": d.textOf(e), "html": d.source[e.begin:e.end], "attributes": attributes,
	}, nil
}

func (d *htmlDocument) textOf(e *htmlElement) string {
	return strings.TrimSpace(d.text[e.from:e.to])
}

// plainText returns the text of the body if there is one, because the text in the
// head is not part of what readers see.
func plainText(m *evaluation, a args) (any, error) {
	source, err := a.text(0)
	if err != nil {
		return nil, err
	}
	doc, err := m.parseHTML(source)
	if err != nil {
		return nil, err
	}
	for i := range doc.elements {
		if doc.elements[i].tag == "body" {
			return doc.textOf(&doc.elements[i]), nil
		}
	}
	return strings.TrimSpace(doc.text), nil
}
