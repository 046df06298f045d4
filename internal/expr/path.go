package expr

import (
	"slices"

	"github.com/stepmill/stepmill/internal/jsonpointer"
)

// maxPointer bounds the length of the keys that lead to an expression, because
// every reference stores the pointer.
const maxPointer = 4 << 10

// path is a path inside a value, nil for its root. JSON pointers are built only
// when needed, because a value can have many deep paths.
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

// pointer returns the JSON pointer, truncated if it is too long to be useful.
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
