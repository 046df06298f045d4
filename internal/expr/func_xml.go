package expr

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

type xmlElement struct {
	name    string
	members map[string]any // attributes and elements; nil if there are none
	text    strings.Builder
}

// value returns the element as its parent contains it.
func (e *xmlElement) value() any {
	text := strings.TrimSpace(e.text.String())
	if e.members == nil {
		return text
	}
	if text != "" {
		e.members["#text"] = text
	}
	return e.members
}

func (e *xmlElement) set(m *evaluation, name string, v any) error {
	if e.members == nil {
		if err := m.grow(weightObject); err != nil {
			return err
		}
		e.members = map[string]any{}
	}
	if err := m.grow(2*weightKey + weightList + 2*weightElement); err != nil {
		return err
	}
	switch before := e.members[name].(type) {
	case nil:
		e.members[name] = v
	case []any:
		e.members[name] = append(before, v)
	default:
		e.members[name] = []any{before, v}
	}
	return nil
}

// parseXML reads tokens without resolving namespaces, so that names keep their
// prefixes. The decoder does not read document types: it knows only the five
// predefined entities, so text cannot expand or refer to files.
func parseXML(m *evaluation, a args) (any, error) {
	text, err := a.text(0)
	if err != nil {
		return nil, err
	}
	if err := m.write(3 * len(text)); err != nil {
		return nil, err
	}
	if err := m.spend(len(text) / 2); err != nil {
		return nil, err
	}
	dec := xml.NewDecoder(strings.NewReader(text))
	// The text is decoded already, whatever the declaration says.
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	document := &xmlElement{}
	open := []*xmlElement{document}
	for {
		token, err := dec.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, invalidXML(dec)
		}
		if open, err = m.readXML(dec, token, open); err != nil {
			return nil, err
		}
	}
	if len(open) > 1 || len(document.members) == 0 {
		return nil, invalidXML(dec)
	}
	return document.members, nil
}

func invalidXML(dec *xml.Decoder) error {
	line, _ := dec.InputPos()
	return failf("the text is not valid XML at line %d", line)
}

func (m *evaluation) readXML(dec *xml.Decoder, token xml.Token, open []*xmlElement) ([]*xmlElement, error) {
	if err := m.spend(2); err != nil {
		return nil, err
	}
	inner := open[len(open)-1]
	switch t := token.(type) {
	case xml.StartElement:
		if len(open) > maxNesting {
			return nil, failf("the XML is nested too deeply")
		}
		if len(open) == 1 && inner.members != nil {
			return nil, invalidXML(dec) // a second root
		}
		e, err := m.startXML(dec, t)
		return append(open, e), err
	case xml.EndElement:
		if len(open) == 1 || inner.name != xmlName(t.Name) {
			return nil, invalidXML(dec)
		}
		open = open[:len(open)-1]
		return open, open[len(open)-1].set(m, inner.name, inner.value())
	case xml.CharData:
		if len(open) == 1 && strings.TrimSpace(string(t)) != "" {
			return nil, invalidXML(dec)
		}
		inner.text.Write(t)
	}
	return open, nil
}

func (m *evaluation) startXML(dec *xml.Decoder, t xml.StartElement) (*xmlElement, error) {
	if err := m.grow(2 * weightKey); err != nil {
		return nil, err
	}
	e := &xmlElement{name: xmlName(t.Name)}
	for _, attr := range t.Attr {
		name := "@" + xmlName(attr.Name)
		if _, ok := e.members[name]; ok {
			return nil, invalidXML(dec)
		}
		if err := e.set(m, name, attr.Value); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func xmlName(n xml.Name) string {
	if n.Space != "" {
		return n.Space + ":" + n.Local
	}
	return n.Local
}
