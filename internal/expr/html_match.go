package expr

import "strings"

// htmlMatcher finds the elements of a document that a selector matches.
//
// It goes through the document once. For each element it finds out which compounds
// match it together with everything before them, one bit for each, so that the time
// does not depend on how elements are nested.
type htmlMatcher struct {
	m      *evaluation
	doc    *htmlDocument
	s      *selector
	states []matchState    // of the elements
	typed  []int           // positions among the siblings with the same tag
	types  map[typeKey]int // number of such siblings
}

// matchState has a bit for each compound: whether it matches an element, one of the
// element's ancestors, or one of its siblings before.
type matchState struct{ matched, ancestors, siblings uint32 }

type typeKey struct {
	parent int
	tag    string
}

func (d *htmlDocument) find(m *evaluation, s *selector, limit int) ([]int, error) {
	if err := m.grow(len(d.elements) * (weightElement + 2*weightElement)); err != nil {
		return nil, err
	}
	h := &htmlMatcher{m: m, doc: d, s: s, states: make([]matchState, len(d.elements))}
	if s.typed {
		if err := h.countTypes(); err != nil {
			return nil, err
		}
	}
	var out []int
	for i := range d.elements {
		found, err := h.visit(i)
		if err != nil {
			return nil, err
		}
		if found {
			if out = append(out, i); len(out) == limit {
				break
			}
		}
	}
	return out, nil
}

// countTypes finds the positions of elements among their siblings with the same tag.
func (h *htmlMatcher) countTypes() error {
	n := len(h.doc.elements)
	if err := h.m.grow(n * (weightElement + 2*weightKey)); err != nil {
		return err
	}
	h.typed, h.types = make([]int, n), make(map[typeKey]int)
	for i, e := range h.doc.elements {
		key := typeKey{e.parent, e.tag}
		h.types[key]++
		h.typed[i] = h.types[key]
	}
	return h.m.spend(4 * n)
}

// visit sets the state of an element, after those of its parent and its siblings
// before, and reports whether the selector matches it.
func (h *htmlMatcher) visit(i int) (bool, error) {
	if err := h.m.spend(1 + len(h.s.compounds)/4); err != nil {
		return false, err
	}
	e := &h.doc.elements[i]
	var parent, previous matchState
	if e.parent >= 0 {
		parent = h.states[e.parent]
	}
	if e.previous >= 0 {
		previous = h.states[e.previous]
	}
	here := &h.states[i]
	here.ancestors = parent.ancestors | parent.matched
	here.siblings = previous.siblings | previous.matched
	found := false
	for n := range h.s.compounds {
		c := &h.s.compounds[n]
		before := ^uint32(0)
		switch c.combinator {
		case ' ':
			before = here.ancestors
		case '>':
			before = parent.matched
		case '+':
			before = previous.matched
		case '~':
			before = here.siblings
		}
		if c.combinator != 0 && before&(1<<(n-1)) == 0 {
			continue
		}
		ok, err := h.matches(i, c)
		if err != nil {
			return false, err
		}
		if ok {
			here.matched |= 1 << n
			found = found || c.last
		}
	}
	return found, nil
}

func (h *htmlMatcher) matches(i int, c *compound) (bool, error) {
	if c.tag != "" && c.tag != h.doc.elements[i].tag {
		return false, nil
	}
	for n := range c.tests {
		ok, err := h.passes(i, &c.tests[n])
		if err != nil || !ok {
			return false, err
		}
	}
	return true, h.m.spend(1)
}

func (h *htmlMatcher) passes(i int, t *elementTest) (bool, error) {
	switch t.kind {
	case ':':
		return t.allows(h.position(i, t)), h.m.spend(1)
	case '!':
		for n := range t.not {
			ok, err := h.matches(i, &t.not[n])
			if err != nil || ok {
				return false, err
			}
		}
		return true, nil
	}
	e := &h.doc.elements[i]
	if err := h.m.spend(1 + len(e.attributes)/4); err != nil {
		return false, err
	}
	value, ok := e.attribute(t.name)
	if !ok {
		return false, nil
	}
	if err := h.m.read(4 * len(value)); err != nil {
		return false, err
	}
	return t.compare(value), nil
}

// position returns the position of an element as the test counts it.
func (h *htmlMatcher) position(i int, t *elementTest) int {
	e := &h.doc.elements[i]
	position, total := e.position, h.doc.top
	switch {
	case t.typed:
		position, total = h.typed[i], h.types[typeKey{e.parent, e.tag}]
	case e.parent >= 0:
		total = h.doc.elements[e.parent].children
	}
	if t.reverse {
		return total - position + 1
	}
	return position
}

func (t *elementTest) allows(position int) bool {
	steps := position - t.b
	if t.a == 0 {
		return steps == 0
	}
	return steps%t.a == 0 && steps/t.a >= 0
}

func (t *elementTest) compare(value string) bool {
	switch t.op {
	case 0:
		return true
	case '=':
		return value == t.value
	case '~':
		return t.value != "" && hasWord(value, t.value)
	case '|':
		return value == t.value || strings.HasPrefix(value, t.value+"-")
	case '^':
		return t.value != "" && strings.HasPrefix(value, t.value)
	case '$':
		return t.value != "" && strings.HasSuffix(value, t.value)
	}
	return t.value != "" && strings.Contains(value, t.value)
}

// hasWord reports whether a list between white space has a word.
func hasWord(list, word string) bool {
	for {
		list = strings.TrimLeft(list, cssSpace)
		if list == "" {
			return false
		}
		end := strings.IndexAny(list, cssSpace)
		if end < 0 {
			return list == word
		}
		if list[:end] == word {
			return true
		}
		list = list[end:]
	}
}
