package expr

import (
	"slices"
)

// loop is a call of a function that evaluates an expression for each element of a
// list, such as filter, map or reduce.
type loop struct {
	at    int
	list  node
	body  node // nil where the expression may be left out
	extra node // the order of sortBy, the start of reduce; may be nil
	frame int
	cost  int // steps of one iteration
	run   loopFunc
}

// loopFunc implements one such function.
type loopFunc func(m *evaluation, l *loop, items []any) (any, error)

func (l *loop) eval(m *evaluation) (any, error) {
	v, err := l.list.eval(m)
	if err != nil {
		return nil, err
	}
	items, err := elements(v)
	if err != nil {
		return nil, locate(err, l.at)
	}
	out, err := l.run(m, l, items)
	return out, locate(err, l.at)
}

func (l *loop) value(m *evaluation, i int, item any) (any, error) {
	if err := m.spend(l.cost); err != nil {
		return nil, err
	}
	item, err := m.normalize(item)
	if err != nil || l.body == nil {
		return item, err
	}
	f := &m.frames[l.frame]
	f.item, f.index = item, i
	return l.body.eval(m)
}

func (l *loop) holds(m *evaluation, i int, item any) (bool, error) {
	v, err := l.value(m, i, item)
	if err != nil {
		return false, err
	}
	return asCondition(v)
}

// first returns the index of the first element for which the body equals want,
// -1 if there is none.
func (l *loop) first(m *evaluation, items []any, want bool) (int, error) {
	for i, item := range items {
		ok, err := l.holds(m, i, item)
		if err != nil {
			return 0, err
		}
		if ok == want {
			return i, nil
		}
	}
	return -1, nil
}

func loopAll(m *evaluation, l *loop, items []any) (any, error) {
	i, err := l.first(m, items, false)
	return i < 0, err
}

func loopAny(m *evaluation, l *loop, items []any) (any, error) {
	i, err := l.first(m, items, true)
	return i >= 0, err
}

func loopNone(m *evaluation, l *loop, items []any) (any, error) {
	i, err := l.first(m, items, true)
	return i < 0, err
}

func loopOne(m *evaluation, l *loop, items []any) (any, error) {
	n, err := l.count(m, items)
	return n == 1, err
}

func loopCount(m *evaluation, l *loop, items []any) (any, error) {
	return boxed(l.count(m, items))
}

func (l *loop) count(m *evaluation, items []any) (int, error) {
	n := 0
	for i, item := range items {
		ok, err := l.holds(m, i, item)
		if err != nil {
			return 0, err
		}
		if ok {
			n++
		}
	}
	return n, nil
}

func loopFind(m *evaluation, l *loop, items []any) (any, error) {
	i, err := l.first(m, items, true)
	if err != nil || i < 0 {
		return nil, err
	}
	return m.normalize(items[i])
}

func loopFindIndex(m *evaluation, l *loop, items []any) (any, error) {
	i, err := l.first(m, items, true)
	if err != nil || i < 0 {
		return nil, err
	}
	return i, nil
}

func loopFindLast(m *evaluation, l *loop, items []any) (any, error) {
	for i, item := range slices.Backward(items) {
		ok, err := l.holds(m, i, item)
		if err != nil {
			return nil, err
		}
		if ok {
			return m.normalize(items[i])
		}
	}
	return nil, nil
}

func loopFilter(m *evaluation, l *loop, items []any) (any, error) {
	out := []any{}
	for i, item := range items {
		ok, err := l.holds(m, i, item)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		// Charged twice, because a growing list is copied.
		if err := m.grow(2 * weightElement); err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func loopMap(m *evaluation, l *loop, items []any) (any, error) {
	if err := m.grow(weightList + len(items)*(weightElement+weightBoxed)); err != nil {
		return nil, err
	}
	out := make([]any, len(items))
	for i, item := range items {
		v, err := l.value(m, i, item)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func loopSum(m *evaluation, l *loop, items []any) (any, error) {
	var total any = 0
	for i, item := range items {
		v, err := l.value(m, i, item)
		if err != nil {
			return nil, err
		}
		if _, ok := float(v); !ok {
			return nil, failf("sum adds numbers, got %s", kind(v))
		}
		if total, err = add(m, total, v); err != nil {
			return nil, err
		}
	}
	return total, nil
}

func loopReduce(m *evaluation, l *loop, items []any) (any, error) {
	skip := 0
	var acc any
	var err error
	switch {
	case l.extra != nil:
		acc, err = l.extra.eval(m)
	case len(items) == 0:
		return nil, failf("reduce of an empty array needs a start value")
	default:
		skip = 1
		acc, err = m.normalize(items[0])
	}
	if err != nil {
		return nil, err
	}
	for i := skip; i < len(items); i++ {
		m.frames[l.frame].acc = acc
		if acc, err = l.value(m, i, items[i]); err != nil {
			return nil, err
		}
	}
	return acc, nil
}

func loopGroupBy(m *evaluation, l *loop, items []any) (any, error) {
	groups := map[string][]any{}
	for i, item := range items {
		v, err := l.value(m, i, item)
		if err != nil {
			return nil, err
		}
		k, err := m.key(v)
		if err != nil {
			return nil, err
		}
		if err := m.read(len(k)); err != nil {
			return nil, err
		}
		cost := 2 * weightElement
		if _, known := groups[k]; !known {
			cost += 2*weightKey + len(k)
		}
		if err := m.grow(cost); err != nil {
			return nil, err
		}
		groups[k] = append(groups[k], item)
	}
	if err := m.growObject(len(groups)); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(groups))
	for k, g := range groups {
		out[k] = g
	}
	return out, nil
}

// pointer is #, #index or #acc.
type pointer struct {
	frame int
	name  string
}

func (n pointer) eval(m *evaluation) (any, error) {
	f := &m.frames[n.frame]
	switch n.name {
	case "index":
		return f.index, nil
	case "acc":
		return f.acc, nil
	}
	return f.item, nil
}
