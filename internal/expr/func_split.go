package expr

import "strings"

// anchor is the length of the prefix of a long text that is searched for before
// the rest is compared. Go's search is linear for short texts only: for long ones
// it uses a hash, and an attacker can choose texts that collide everywhere.
const anchor = 64

// index returns the index in bytes of the first t in s, or -1. It charges for the
// text it skips, so that repeated searches cost as much as the whole text.
func (m *evaluation) index(s, t string) (int, error) {
	head := t[:min(len(t), anchor)]
	for from := 0; ; from++ {
		i := strings.Index(s[from:], head)
		if i < 0 {
			return -1, m.read(len(s) - from)
		}
		if err := m.read(i + len(t)); err != nil {
			return -1, err
		}
		from += i
		if strings.HasPrefix(s[from:], t) {
			return from, nil
		}
	}
}

// lastIndex returns the index in bytes of the last t in s, or -1.
func (m *evaluation) lastIndex(s, t string) (int, error) {
	if err := m.read(len(s)); err != nil {
		return -1, err
	}
	if t == "" {
		return len(s), nil
	}
	last := t[len(t)-1]
	for end := len(s); ; {
		i := strings.LastIndexByte(s[:end], last)
		if i < 0 {
			return -1, nil
		}
		if strings.HasSuffix(s[:i+1], t) {
			return i + 1 - len(t), nil
		}
		if err := m.read(len(t)); err != nil {
			return -1, err
		}
		end = i
	}
}

// cut calls part with each part of s between occurrences of sep, at most limit
// times if limit is positive.
func (m *evaluation) cut(s, sep string, limit int, part func(string) error) error {
	for n := 1; limit <= 0 || n < limit; n++ {
		i, err := m.index(s, sep)
		if err != nil {
			return err
		}
		if i < 0 {
			break
		}
		if err := part(s[:i]); err != nil {
			return err
		}
		s = s[i+len(sep):]
	}
	return part(s)
}

func split(m *evaluation, a args) (any, error) {
	s, err := a.texts(2)
	if err != nil {
		return nil, err
	}
	limit := 0
	if a.has(2) {
		if limit, err = a.whole(2); err != nil {
			return nil, err
		}
	}
	out := []any{}
	keep := func(part string) error {
		out = append(out, part)
		return m.grow(2*weightElement + weightBoxed)
	}
	if s[1] == "" {
		err = m.explode(s[0], limit, keep)
	} else {
		err = m.cut(s[0], s[1], limit, keep)
	}
	return out, err
}

func (m *evaluation) explode(s string, limit int, part func(string) error) error {
	n := 1
	for s != "" {
		size := byteOffset(s, 1)
		if limit > 0 && n == limit {
			size = len(s)
		}
		if err := m.spend(1); err != nil {
			return err
		}
		if err := part(s[:size]); err != nil {
			return err
		}
		s = s[size:]
		n++
	}
	return nil
}

func replace(m *evaluation, a args) (any, error) {
	s, err := a.texts(3)
	if err != nil {
		return nil, err
	}
	if s[1] == "" {
		return nil, failf("argument 2 of replace is empty")
	}
	var b strings.Builder
	first := true
	err = m.cut(s[0], s[1], 0, func(part string) error {
		glue := s[2]
		if first {
			glue, first = "", false
		}
		if err := m.extend(len(glue) + len(part)); err != nil {
			return err
		}
		b.WriteString(glue)
		b.WriteString(part)
		return nil
	})
	return b.String(), err
}

func join(m *evaluation, a args) (any, error) {
	items, err := a.list(0)
	if err != nil {
		return nil, err
	}
	glue := ""
	if a.has(1) {
		if glue, err = a.text(1); err != nil {
			return nil, err
		}
	}
	var b strings.Builder
	for i, item := range items {
		item, err := m.normalize(item)
		if err != nil {
			return nil, err
		}
		s, err := m.text(item)
		if err != nil {
			return nil, err
		}
		if err := m.extend(len(glue) + len(s)); err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString(glue)
		}
		b.WriteString(s)
	}
	return b.String(), nil
}
