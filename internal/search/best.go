package search

import (
	"cmp"
	"slices"
)

// Best collects the best matches of a search. It never holds more than a small
// multiple of its limit.
type Best[T any] struct {
	limit int
	found []match[T]
}

type match[T any] struct {
	rank   Rank
	folded string
	name   string
	id     string
	item   T
}

// NewBest returns a collection of at most limit items.
func NewBest[T any](limit int) *Best[T] { return &Best[T]{limit: limit} }

// Add offers the item of an entry with the given rank. It ignores rank None.
func (b *Best[T]) Add(rank Rank, e Entry, item T) {
	if rank == None {
		return
	}
	b.found = append(b.found, match[T]{rank, fold(e.Name), e.Name, e.ID, item})
	if len(b.found) >= 4*b.limit {
		b.cut()
	}
}

// Items returns the best items, best first. Those of the same rank are ordered
// by name without regard to case, then by id.
func (b *Best[T]) Items() []T {
	b.cut()
	items := make([]T, len(b.found))
	for i, m := range b.found {
		items[i] = m.item
	}
	return items
}

func (b *Best[T]) cut() {
	slices.SortStableFunc(b.found, func(x, y match[T]) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.folded, y.folded), cmp.Compare(x.name, y.name), cmp.Compare(x.id, y.id))
	})
	b.found = b.found[:min(len(b.found), b.limit)]
}
