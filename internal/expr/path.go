package expr

import (
	"slices"

	"github.com/stepmill/stepmill/internal/jsonpointer"
)

// maxPointer bounds the keys that lead to an expression, whose pointer is kept
// with every reference it holds.
const maxPointer = 4 << 10

// path is a place inside a value, nil for its root. Pointers are only written
// out for the places that need one: a value can have many deep ones.
type path struct {
	up  *path
	key string
}

func (p *path) length() int {
	n := 0
	for ; p != nil; p = p.up {
		n += 1 + len(p.key)
	}
	return n
}

// pointer returns the JSON pointer, shortened from its end if it is far longer
// than any that is of use.
func (p *path) pointer() string {
	for p.length() > 2*maxPointer {
		p = p.up
	}
	var keys []string
	for ; p != nil; p = p.up {
		keys = append(keys, p.key)
	}
	slices.Reverse(keys)
	return jsonpointer.Of(keys...)
}
