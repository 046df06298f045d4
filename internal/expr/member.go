package expr

import "unicode/utf8"

// Accessing a member never fails: a missing key, an index out of range and any
// member of a value without members are nil.

// field is .name or ["name"].
type field struct {
	of   node
	name string
}

func (n field) eval(m *evaluation) (any, error) {
	v, err := n.of.eval(m)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case map[string]any:
		return m.normalize(v[n.name])
	case *File:
		return m.normalize(v.members[n.name])
	}
	return nil, nil
}

// element is [key] with a computed key or a number.
type element struct{ of, key node }

func (n element) eval(m *evaluation) (any, error) {
	v, err := n.of.eval(m)
	if err != nil {
		return nil, err
	}
	k, err := n.key.eval(m)
	if err != nil {
		return nil, err
	}
	return m.member(v, k)
}

func (m *evaluation) member(v, key any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		return m.memberOfObject(v, key)
	case *File:
		if _, isIndex := whole(key); isIndex && v.List != nil {
			return nil, failf("cannot take an item of %s", got(v))
		}
		return m.memberOfObject(v.members, key)
	case []any:
		i, ok := whole(key)
		if i < 0 {
			i += len(v)
		}
		if !ok || i < 0 || i >= len(v) {
			return nil, nil
		}
		return m.normalize(v[i])
	}
	return nil, nil
}

// memberOfObject looks up a number by its text, because groupBy and fromPairs
// convert numbers to keys.
func (m *evaluation) memberOfObject(v map[string]any, key any) (any, error) {
	switch key.(type) {
	case nil, []any, map[string]any, *File:
		return nil, nil
	}
	k, err := m.text(key)
	if err != nil {
		return nil, err
	}
	if err := m.read(len(k)); err != nil {
		return nil, err
	}
	return m.normalize(v[k])
}

// slice is [from:to] of an array or of the characters of a string.
type slice struct {
	at           int
	of, from, to node // from and to may be nil
}

func (n slice) eval(m *evaluation) (any, error) {
	v, err := n.of.eval(m)
	if err != nil {
		return nil, err
	}
	from, err := bound(m, n.from, n.at)
	if err != nil {
		return nil, err
	}
	to, err := bound(m, n.to, n.at)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		a, b := clamp(from, to, len(v))
		return v[a:b:b], nil
	case string:
		return boxed(m.substring(v, from, to))
	}
	return nil, locate(failf("cannot slice %s", got(v)), n.at)
}

// bound evaluates one end of a slice; nil means the end of the value.
func bound(m *evaluation, n node, at int) (*int, error) {
	if n == nil {
		return nil, nil
	}
	v, err := n.eval(m)
	if err != nil || v == nil {
		return nil, err
	}
	i, ok := whole(v)
	if !ok {
		return nil, locate(failf("the end of a slice must be a whole number, got %s", kind(v)), at)
	}
	return &i, nil
}

// clamp limits both ends to 0…size; negative ones count from the end.
func clamp(from, to *int, size int) (a, b int) {
	a, b = 0, size
	if from != nil {
		a = fromEnd(*from, size)
	}
	if to != nil {
		b = fromEnd(*to, size)
	}
	return min(a, b), b
}

func fromEnd(i, size int) int {
	if i < 0 {
		i += size
	}
	return min(max(i, 0), size)
}

func (m *evaluation) substring(s string, from, to *int) (string, error) {
	if err := m.read(2 * len(s)); err != nil {
		return "", err
	}
	chars := utf8.RuneCountInString(s)
	a, b := clamp(from, to, chars)
	if chars == len(s) {
		return s[a:b], nil
	}
	start := byteOffset(s, a)
	return s[start : start+byteOffset(s[start:], b-a)], nil
}
