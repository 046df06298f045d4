// Package paging owns paginated lists: pages and cursors. A cursor is the
// position of the last row seen, encrypted with a key of the installation and
// bound to its list (workspace and filters). A client can neither read nor forge
// a cursor, nor use it with another list.
package paging

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"

	"github.com/stepmill/stepmill/internal/fault"
)

// The bounds of a page.
const (
	DefaultLimit = 20
	MaxLimit     = 100
)

// Request asks for one page: at most Limit rows after the position. Rows are
// ordered by a key that is unique and never changes, newest first or by name;
// the position is the key of the last row seen, empty for the first page.
type Request struct {
	Limit int
	After string
}

// Page is one page of a list. Next is the position of its last row, empty on
// the last page.
type Page[T any] struct {
	Items []T
	Next  string
}

// Cut turns up to limit+1 rows into a page. The extra row only shows that
// another page follows.
func Cut[T any](rows []T, limit int, key func(T) string) Page[T] {
	if len(rows) <= limit {
		return Page[T]{Items: rows}
	}
	return Page[T]{Items: rows[:limit], Next: key(rows[limit-1])}
}

// Codec encrypts positions into cursors.
type Codec struct{ aead cipher.AEAD }

const maxCursor = 512

// NewCodec returns a codec with a 32-byte key.
func NewCodec(key []byte) (*Codec, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &Codec{aead: aead}, nil
}

// Seal returns the cursor for a position in the list that scope names.
func (c *Codec) Seal(position, scope string) string {
	sealed := c.aead.Seal(nil, nil, []byte(position), []byte(scope))
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// Open returns the position in a cursor. If the cursor does not belong to the
// list that scope names, Open returns an invalid_cursor error.
func (c *Codec) Open(cursor, scope string) (string, error) {
	invalid := fault.New(fault.InvalidCursor, "the cursor was not returned by this list with the same filters; start again without a cursor")
	if len(cursor) > maxCursor {
		return "", invalid
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return "", invalid
	}
	position, err := c.aead.Open(nil, nil, sealed, []byte(scope))
	if err != nil {
		return "", invalid
	}
	return string(position), nil
}

// NewKey returns a random key, for tests.
func NewKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return key
}
