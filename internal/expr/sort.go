package expr

import (
	"math/bits"
	"slices"
)

// sortCost returns the number of steps to sort n elements.
func sortCost(n int) int { return n * (bits.Len(uint(n)) + 1) }

type sortable struct {
	key  any
	item any
}

// sorted sorts items by their keys; the sort is stable. Nil keys come last in
// either order, because they mean "missing".
func (m *evaluation) sorted(items []sortable, order any) ([]any, error) {
	sign := 1
	switch order {
	case nil, "asc":
	case "desc":
		sign = -1
	default:
		return nil, failf(`the order must be "asc" or "desc"`)
	}
	if err := m.spend(2 * sortCost(len(items))); err != nil {
		return nil, err
	}
	var failed error
	slices.SortStableFunc(items, func(a, b sortable) int {
		// The sort cannot be stopped, but after an error comparisons become cheap.
		if failed != nil {
			return 0
		}
		c, err := m.order(a.key, b.key, sign)
		if err != nil {
			failed = err
		}
		return c
	})
	if failed != nil {
		return nil, failed
	}
	if err := m.growList(len(items)); err != nil {
		return nil, err
	}
	out := make([]any, len(items))
	for i, s := range items {
		out[i] = s.item
	}
	return out, nil
}

func (m *evaluation) order(a, b any, sign int) (int, error) {
	switch {
	case a == nil && b == nil:
		return 0, nil
	case a == nil:
		return 1, nil
	case b == nil:
		return -1, nil
	}
	if err := checkComparable(a, b); err != nil {
		return 0, err
	}
	c, err := m.compare("sort", a, b)
	return sign * c, err
}

// checkComparable rejects mixes of types that compare accepts but sorting must
// not: if strings were parsed as times, the order would depend on which pairs are
// compared.
func checkComparable(a, b any) error {
	_, numA := float(a)
	_, numB := float(b)
	if numA && numB || kind(a) == kind(b) {
		return nil
	}
	return failf("cannot sort %s and %s together", kind(a), kind(b))
}

func loopSortBy(m *evaluation, l *loop, items []any) (any, error) {
	var order any
	if l.extra != nil {
		var err error
		if order, err = l.extra.eval(m); err != nil {
			return nil, err
		}
	}
	if err := m.grow(weightList + len(items)*3*weightElement); err != nil {
		return nil, err
	}
	keyed := make([]sortable, len(items))
	for i, item := range items {
		key, err := l.value(m, i, item)
		if err != nil {
			return nil, err
		}
		keyed[i] = sortable{key: key, item: item}
	}
	return boxed(m.sorted(keyed, order))
}
