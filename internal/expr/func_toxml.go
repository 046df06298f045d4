package expr

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

func toXMLFunctions() []function {
	return []function{
		fn("toXML", "toXML(map) string", `The XML text of a map with one key, the root element, in the form that parseXML returns. Elements are sorted by name, those of a list are in its order, and nil is an empty element.`, 1, 1, toXML,
			`toXML({"order": {"@id": 7, "line": ["a", "b"], "note": nil}})`, `"<order id=\"7\"><line>a</line><line>b</line><note/></order>"`,
			`toXML({"p": {"@lang": "en", "#text": "Hi & bye"}})`, `"<p lang=\"en\">Hi &amp; bye</p>"`),
		fn("escapeXML", "escapeXML(value) string", "The value as text, escaped for XML and HTML.", 1, 1, escapeXML,
			`"<b>" + escapeXML("Fish & \"chips\"") + "</b>"`, `"<b>Fish &amp; &quot;chips&quot;</b>"`),
	}
}

func escapeXML(m *evaluation, a args) (any, error) {
	s, err := m.text(a.values[0])
	if err != nil {
		return nil, err
	}
	w := &xmlWriter{m: m}
	err = w.escape(s, true)
	return w.b.String(), err
}

func toXML(m *evaluation, a args) (any, error) {
	root, err := a.object(0)
	if err != nil {
		return nil, err
	}
	if len(root) != 1 {
		return nil, failf("argument 1 of toXML must have one key, the root element")
	}
	w := &xmlWriter{m: m}
	for name, v := range root {
		if v, err = m.normalize(v); err != nil {
			return nil, err
		}
		if _, ok := v.([]any); ok {
			return nil, failf("argument 1 of toXML must have one root element, not a list")
		}
		if err := w.element(name, v, 0); err != nil {
			return nil, err
		}
	}
	return w.b.String(), nil
}

type xmlWriter struct {
	m *evaluation
	b strings.Builder
}

func (w *xmlWriter) write(s string) error {
	w.b.WriteString(s)
	return w.m.extend(len(s))
}

// element writes an element, or one for each item of a list.
func (w *xmlWriter) element(name string, v any, depth int) error {
	if depth > maxNesting {
		return costf("the value is nested too deeply")
	}
	if !isXMLName(name) {
		return failf("argument 1 of toXML has a key that is not a name in XML")
	}
	v, err := w.m.normalize(v)
	if err != nil {
		return err
	}
	if items, ok := v.([]any); ok {
		for _, item := range items {
			if _, nested := item.([]any); nested {
				return failf("argument 1 of toXML has a list in a list")
			}
			if err := w.element(name, item, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := w.write("<" + name); err != nil {
		return err
	}
	text, elements, err := w.attributes(v)
	if err != nil {
		return err
	}
	if text == "" && len(elements) == 0 {
		return w.write("/>")
	}
	if err := w.write(">"); err != nil {
		return err
	}
	if err := w.escape(text, false); err != nil {
		return err
	}
	members, _ := v.(map[string]any)
	for _, inner := range elements {
		if err := w.element(inner, members[inner], depth+1); err != nil {
			return err
		}
	}
	return w.write("</" + name + ">")
}

// attributes writes the attributes of an element and returns its text and the names
// of its elements.
func (w *xmlWriter) attributes(v any) (text string, elements []string, err error) {
	members, ok := v.(map[string]any)
	if !ok {
		text, err = w.scalar(v)
		return text, nil, err
	}
	keys, err := w.m.keys(members)
	if err != nil {
		return "", nil, err
	}
	for _, key := range keys {
		name, isAttribute := strings.CutPrefix(key, "@")
		if !isAttribute && key != "#text" {
			elements = append(elements, key)
			continue
		}
		value, err := w.scalar(members[key])
		if err != nil {
			return "", nil, err
		}
		if !isAttribute {
			text = value
			continue
		}
		if err := w.attribute(name, value); err != nil {
			return "", nil, err
		}
	}
	return text, elements, w.m.grow(2 * len(elements) * weightElement)
}

// scalar returns the text of an attribute or of #text.
func (w *xmlWriter) scalar(v any) (string, error) {
	v, err := w.m.normalize(v)
	if err != nil {
		return "", err
	}
	switch v.(type) {
	case []any, map[string]any, *File:
		return "", failf("argument 1 of toXML has an attribute or a text that is %s", kind(v))
	}
	return w.m.text(v)
}

func (w *xmlWriter) attribute(name, value string) error {
	if !isXMLName(name) {
		return failf("argument 1 of toXML has a key that is not a name in XML")
	}
	if err := w.write(" " + name + `="`); err != nil {
		return err
	}
	if err := w.escape(value, true); err != nil {
		return err
	}
	return w.write(`"`)
}

// escape writes text. In attributes, quotes and line breaks are escaped too.
// Characters that XML cannot represent become the replacement character.
func (w *xmlWriter) escape(s string, attribute bool) error {
	if err := w.m.read(2 * len(s)); err != nil {
		return err
	}
	from := 0
	for i, r := range s {
		escaped := xmlEscape(r, attribute)
		if escaped == "" {
			continue
		}
		if err := w.write(s[from:i]); err != nil {
			return err
		}
		if err := w.write(escaped); err != nil {
			return err
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		from = i + size
	}
	return w.write(s[from:])
}

// xmlEscape returns what represents a character, "" for the character itself.
func xmlEscape(r rune, attribute bool) string {
	switch {
	case r == '&':
		return "&amp;"
	case r == '<':
		return "&lt;"
	case r == '>':
		return "&gt;"
	case r == '\r':
		return "&#13;"
	case r == '\n' || r == '\t':
		if attribute {
			return map[rune]string{'\n': "&#10;", '\t': "&#9;"}[r]
		}
	case r == '"' && attribute:
		return "&quot;"
	case r == '\'' && attribute:
		return "&#39;"
	case r < ' ', r == utf8.RuneError, r == 0xFFFE, r == 0xFFFF:
		return "\uFFFD"
	}
	return ""
}

// isXMLName reports whether s can be the name of an element or attribute, with or
// without a prefix.
func isXMLName(s string) bool {
	prefix, local, ok := strings.Cut(s, ":")
	return isPlainXMLName(prefix) && (!ok || isPlainXMLName(local))
}

func isPlainXMLName(s string) bool {
	for i, r := range s {
		switch {
		case r == '_', unicode.IsLetter(r):
		case i > 0 && (r == '-' || r == '.' || unicode.IsDigit(r) || unicode.IsMark(r)):
		default:
			return false
		}
	}
	return s != ""
}
