package expr

// node is a compiled piece of an expression. Nodes are immutable; what changes
// is in the machine. They do not count steps one by one: without loops an
// expression costs at most its size, which is charged when it starts, and each
// loop charges the size of its body once per iteration.
type node interface {
	eval(m *machine) (any, error)
}

// code is one compiled expression and where it stands in the compiled string.
type code struct {
	root   node
	source string
	origin position
	refs   Refs

	size     int // nodes
	slots    int // let variables
	frames   int // loops nested in each other
	patterns int // instructions of its regular expressions
}

type constant struct{ value any }

func (n constant) eval(*machine) (any, error) { return n.value, nil }

// slot reads a let variable.
type slot struct{ index int }

func (n slot) eval(m *machine) (any, error) { return m.slots[n.index], nil }

type let struct {
	index int
	value node
	body  node
}

func (n let) eval(m *machine) (any, error) {
	v, err := n.value.eval(m)
	if err != nil {
		return nil, err
	}
	m.slots[n.index] = v
	return n.body.eval(m)
}

type sequence struct{ nodes []node }

func (n sequence) eval(m *machine) (v any, err error) {
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

func (n conditional) eval(m *machine) (any, error) {
	ok, err := condition(m, n.cond, n.at)
	if err != nil {
		return nil, err
	}
	if ok {
		return n.then.eval(m)
	}
	return n.other.eval(m)
}

func condition(m *machine, n node, at int) (bool, error) {
	v, err := n.eval(m)
	if err != nil {
		return false, err
	}
	ok, err := truth(v)
	return ok, locate(err, at)
}

// logic is && and ||: the right side is only evaluated if the left one has not
// decided.
type logic struct {
	at          int
	left, right node
	decides     bool
}

func (n logic) eval(m *machine) (any, error) {
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

func (n not) eval(m *machine) (any, error) {
	v, err := condition(m, n.of, n.at)
	return !v, err
}

// coalesce is ??.
type coalesce struct{ left, right node }

func (n coalesce) eval(m *machine) (any, error) {
	v, err := n.left.eval(m)
	if err != nil || v != nil {
		return v, err
	}
	return n.right.eval(m)
}

type array struct{ items []node }

func (n array) eval(m *machine) (any, error) {
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

func (n object) eval(m *machine) (any, error) {
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

// key is the text under which a value is a key of an object.
func (m *machine) key(v any) (string, error) {
	switch v.(type) {
	case []any, map[string]any:
		return "", failf("%s cannot be a key", kind(v))
	}
	return m.text(v)
}

func boxed[T any](v T, err error) (any, error) { return v, err }
