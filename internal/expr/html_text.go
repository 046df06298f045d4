package expr

import "strings"

// htmlText is the text of a document as it is read: spaces are joined, and blocks
// are on lines of their own.
type htmlText struct {
	b       strings.Builder
	pending byte // a space or line break that text may follow
	hidden  int  // open elements whose text is not shown
	plain   int  // open elements that keep spaces
}

func (t *htmlText) enter(tag string) {
	if hiddenTags[tag] {
		t.hidden++
	}
	if tag == "pre" {
		t.plain++
	}
}

func (t *htmlText) leave(tag string) {
	if hiddenTags[tag] {
		t.hidden--
	}
	if tag == "pre" {
		t.plain--
	}
}

// breakAt ends the line at the beginning and the end of a block. Cells of a table are
// separated by tabs.
func (t *htmlText) breakAt(tag string) {
	switch {
	case blockTags[tag] || lineTags[tag]:
		t.pending = '\n'
	case (tag == "td" || tag == "th") && t.pending != '\n':
		t.pending = '\t'
	}
}

func (t *htmlText) add(m *evaluation, text string) error {
	if t.hidden > 0 {
		return nil
	}
	if err := m.extend(len(text)); err != nil {
		return err
	}
	if t.plain > 0 {
		t.writePending()
		t.b.WriteString(text)
		return nil
	}
	for text != "" {
		n := strings.IndexAny(text, " \t\n\r\f")
		if n != 0 {
			if n < 0 {
				n = len(text)
			}
			t.writePending()
			t.b.WriteString(text[:n])
			text = text[n:]
			continue
		}
		if t.pending == 0 {
			t.pending = ' '
		}
		text = strings.TrimLeft(text, " \t\n\r\f")
	}
	return nil
}

// writePending separates text from the text before.
func (t *htmlText) writePending() {
	if t.pending != 0 && t.b.Len() > 0 {
		t.b.WriteByte(t.pending)
	}
	t.pending = 0
}
