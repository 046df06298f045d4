package expr

// Nodes that read the environment.

// rootValue is a field of a root with fixed fields, such as trigger.payload.
type rootValue struct{ read func(*Env) any }

func (n rootValue) eval(m *evaluation) (any, error) { return m.normalize(n.read(m.env)) }

// rootObject is a whole root with fixed fields, such as trigger.
type rootObject struct {
	fields  []string
	readers []func(*Env) any
}

func newRootObject(root string) rootObject {
	n := rootObject{fields: fieldsOf(root)}
	for _, f := range n.fields {
		n.readers = append(n.readers, rootField(root+"."+f))
	}
	return n
}

func (n rootObject) eval(m *evaluation) (any, error) {
	if err := m.growObject(len(n.fields)); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(n.fields))
	for i, f := range n.fields {
		out[f] = n.readers[i](m.env)
	}
	return out, nil
}

// stepValue is steps.id.name. A step without an entry has nil fields.
type stepValue struct{ id, name string }

func (n stepValue) eval(m *evaluation) (any, error) {
	s, ok := m.env.Steps[n.id]
	if !ok {
		return nil, nil
	}
	return m.normalize(s.field(n.name))
}

// stepObject is steps.id.
type stepObject struct{ id string }

func (n stepObject) eval(m *evaluation) (any, error) {
	s, ok := m.env.Steps[n.id]
	if !ok {
		return nil, nil
	}
	return s.object(), m.growObject(len(stepFields()))
}

// allSteps is steps used as a value.
type allSteps struct{}

func (allSteps) eval(m *evaluation) (any, error) {
	all := m.env.Steps
	if err := m.growObject(len(all)); err != nil {
		return nil, err
	}
	if err := m.grow(len(all) * weightObject); err != nil {
		return nil, err
	}
	if err := m.spend(10 * len(all)); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(all))
	for id, s := range all {
		out[id] = s.object()
	}
	return out, nil
}

type secret struct{ name string }

func (n secret) eval(m *evaluation) (any, error) {
	if s, ok := m.env.Secrets[n.name]; ok {
		return s, nil
	}
	return nil, nil
}

// linkValue is links.id.page or links.id.callback.
type linkValue struct{ id, name string }

func (n linkValue) eval(m *evaluation) (any, error) {
	link, ok := m.env.Links[n.id]
	switch {
	case !ok:
		return nil, nil
	case n.name == "callback":
		return link.Callback, nil
	}
	return link.Page, nil
}

type variable struct{ name string }

func (n variable) eval(m *evaluation) (any, error) { return m.normalize(m.env.Vars[n.name]) }

type allVars struct{}

func (allVars) eval(m *evaluation) (any, error) {
	if m.env.Vars == nil {
		return map[string]any{}, nil
	}
	return m.env.Vars, nil
}

type loopItem struct{}

func (loopItem) eval(m *evaluation) (any, error) {
	if m.env.Loop == nil {
		return nil, nil
	}
	return m.normalize(m.env.Loop.Item)
}

type loopPrevious struct{}

func (loopPrevious) eval(m *evaluation) (any, error) {
	if m.env.Loop == nil {
		return nil, nil
	}
	return m.normalize(m.env.Loop.Previous)
}

type pollResponse struct{}

func (pollResponse) eval(m *evaluation) (any, error) { return m.normalize(m.env.Response) }

type pollCursor struct{}

func (pollCursor) eval(m *evaluation) (any, error) { return m.normalize(m.env.Cursor) }

type loopIndex struct{}

func (loopIndex) eval(m *evaluation) (any, error) {
	if m.env.Loop == nil {
		return nil, nil
	}
	return m.env.Loop.Index, nil
}
