package expr

// node is a compiled part of an expression. Nodes are immutable; the state is in
// the evaluation. They do not count steps individually: without loops an
// expression costs at most its size, which is charged at the start, and each loop
// charges the size of its body per iteration.
type node interface {
	eval(m *evaluation) (any, error)
}

// code is a compiled expression with its position in the compiled string.
type code struct {
	root   node
	source string
	origin position
	refs   Refs
	names  []string // of the scope

	size     int // nodes
	slots    int // let variables
	frames   int // loops nested in each other
	patterns int // instructions of its regular expressions
}

type constant struct{ value any }

func (n constant) eval(*evaluation) (any, error) { return n.value, nil }

// slot reads a let variable.
type slot struct{ index int }

func (n slot) eval(m *evaluation) (any, error) { return m.slots[n.index], nil }

type let struct {
	index int
	value node
	body  node
}

func (n let) eval(m *evaluation) (any, error) {
	v, err := n.value.eval(m)
	if err != nil {
		return nil, err
	}
	m.slots[n.index] = v
	return n.body.eval(m)
}

type sequence struct{ nodes []node }

func (n sequence) eval(m *evaluation) (v any, err error) {
	for _, part := range n.nodes {
		if v, err = part.eval(m); err != nil {
			return nil, err
		}
	}
	return v, nil
}

type conditional struct {
	at                int
	cond, then, other node
}

func (n conditional) eval(m *evaluation) (any, error) {
	ok, err := condition(m, n.cond, n.at)
	if err != nil {
		return nil, err
	}
	if ok {
		return n.then.eval(m)
	}
	return n.other.eval(m)
}

func condition(m *evaluation, n node, at int) (bool, error) {
	v, err := n.eval(m)
	if err != nil {
		return false, err
	}
	ok, err := asCondition(v)
	return ok, locate(err, at)
}

// logic is && and ||. It evaluates the right side only if the left side does not
// decide the result.
type logic struct {
	at          int
	left, right node
	decides     bool
}

func (n logic) eval(m *evaluation) (any, error) {
	l, err := condition(m, n.left, n.at)
	if err != nil || l == n.decides {
		return l, err
	}
	return boxed(condition(m, n.right, n.at))
}

type not struct {
	at int
	of node
}

func (n not) eval(m *evaluation) (any, error) {
	v, err := condition(m, n.of, n.at)
	return !v, err
}

// coalesce is ??.
type coalesce struct{ left, right node }

func (n coalesce) eval(m *evaluation) (any, error) {
	v, err := n.left.eval(m)
	if err != nil || v != nil {
		return v, err
	}
	return n.right.eval(m)
}

type array struct{ items []node }

func (n array) eval(m *evaluation) (any, error) {
	if err := m.growList(len(n.items)); err != nil {
		return nil, err
	}
	out := make([]any, len(n.items))
	for i, item := range n.items {
		v, err := item.eval(m)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

type object struct{ keys, values []node }

func (n object) eval(m *evaluation) (any, error) {
	if err := m.growObject(len(n.keys)); err != nil {
		return nil, err
	}
	if err := m.spend(len(n.keys)); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(n.keys))
	for i := range n.keys {
		k, err := n.keys[i].eval(m)
		if err != nil {
			return nil, err
		}
		v, err := n.values[i].eval(m)
		if err != nil {
			return nil, err
		}
		key, err := m.key(k)
		if err != nil {
			return nil, err
		}
		out[key] = v
	}
	return out, nil
}

// key returns the text of a value that is used as an object key.
func (m *evaluation) key(v any) (string, error) {
	switch v.(type) {
	case []any, map[string]any, *File:
		return "", failf("%s cannot be a key", kind(v))
	}
	return m.text(v)
}

func boxed[T any](v T, err error) (any, error) { return v, err }
