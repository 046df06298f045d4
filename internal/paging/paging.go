// Package paging owns lists that are read page by page: what a page is, and
// cursors. A cursor is the position after the last row seen, sealed with a key
// of the installation and bound to the list it came from (workspace and
// filters), so that a client can neither read nor forge it nor carry it to
// another list.
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

// Page is a part of a list. Next is the position to go on from, empty on the
// last page.
type Page[T any] struct {
	Items []T
	Next  string
}

// Cut turns up to limit+1 rows into a page; the extra row only tells that
// there is more.
func Cut[T any](rows []T, limit int, key func(T) string) Page[T] {
	if len(rows) <= limit {
		return Page[T]{Items: rows}
	}
	return Page[T]{Items: rows[:limit], Next: key(rows[limit-1])}
}

// Codec seals positions into cursors.
type Codec struct{ aead cipher.AEAD }

const maxCursor = 512

// NewCodec makes a codec from a 32-byte key.
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

// Seal makes the cursor for a position in the list that scope names.
func (c *Codec) Seal(position, scope string) string {
	sealed := c.aead.Seal(nil, nil, []byte(position), []byte(scope))
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// Open returns the position in a cursor, or invalid_cursor.
func (c *Codec) Open(cursor, scope string) (string, error) {
	refused := fault.New(fault.InvalidCursor, "the cursor is not one that this list returned for the same filters")
	if len(cursor) > maxCursor {
		return "", refused
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return "", refused
	}
	position, err := c.aead.Open(nil, nil, sealed, []byte(scope))
	if err != nil {
		return "", refused
	}
	return string(position), nil
}

// NewKey makes a key for a codec that lives as long as the process; tests use it.
func NewKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return key
}
