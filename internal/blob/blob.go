// Package blob stores the bytes of files: as a stream, sealed per workspace, in a
// directory, an S3-compatible bucket or PostgreSQL. The packages below it are the
// backends; each implements Store. A blob is immutable and has a random id. The
// package does not know what a blob is for: names, types, references and which
// blobs have equal bytes are the caller's business.
package blob

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/paging"
)

// Errors of every Store. A full disk is a fault with the code storage_full, a
// read-only one storage_read_only, and a backend that does not respond or asks to
// slow down unavailable: that one is worth a retry.
var (
	// ErrNotFound means that there is no blob with the id.
	ErrNotFound = errors.New("blob: there is no blob with this id")
	// ErrExists means that the id is in use.
	ErrExists = errors.New("blob: the id is in use")
	// ErrInvalidID means that a text does not have the form of an id.
	ErrInvalidID = errors.New("blob: the id is invalid")
	// ErrTooLarge means that a blob exceeds the maximum size of the backend.
	ErrTooLarge = errors.New("blob: the blob exceeds the maximum size of the storage")
	// ErrFinished means that an upload was committed or aborted before.
	ErrFinished = errors.New("blob: the upload was committed or aborted")
	// ErrDenied means that the backend rejects our credentials or settings. Only
	// the operator can fix it.
	ErrDenied = errors.New("blob: the storage denies access")
)

// ID is the random name of a blob: 26 characters of base32.
type ID string

const (
	idLength   = 26
	idAlphabet = "abcdefghijklmnopqrstuvwxyz234567"
)

// NewID returns a random id.
func NewID() ID {
	var random [16]byte
	// crypto/rand.Read never fails: it crashes the process instead.
	_, _ = rand.Read(random[:])
	return ID(base32.NewEncoding(idAlphabet).WithPadding(base32.NoPadding).EncodeToString(random[:]))
}

// Check returns ErrInvalidID unless the id has the form of those that NewID
// returns. A valid id is safe in a file name, a URL and an object key.
func (id ID) Check() error {
	valid := len(id) == idLength
	for i := 0; valid && i < len(id); i++ {
		valid = strings.IndexByte(idAlphabet, id[i]) >= 0
	}
	if !valid {
		return fmt.Errorf("%w: %q", ErrInvalidID, string(id))
	}
	return nil
}

// Info describes a stored blob.
type Info struct {
	ID      ID
	Size    int64     // in the store, which is more than the size of the file
	Created time.Time // between the beginning of the upload and its end
}

// Store stores blobs. It is safe for concurrent use. No method holds a whole blob
// in memory; each backend documents how much an upload and a reader hold. Methods
// may be slow, so none may be called inside a write transaction.
type Store interface {
	// Begin begins the upload of a blob. The context applies until the upload is
	// committed or aborted. An id is used once: Begin returns ErrExists for one that
	// is in use, if the backend can tell without another request.
	Begin(ctx context.Context, id ID) (Upload, error)

	// Open returns a reader of at most length bytes of a blob from an offset on. It
	// reads fewer bytes if the blob ends earlier, and none beyond its end. The
	// context applies until the reader is closed.
	Open(ctx context.Context, id ID, offset, length int64) (io.ReadCloser, error)

	// Delete deletes a blob. It is no error if there is none.
	Delete(ctx context.Context, id ID) error

	// List returns a page of the stored blobs in the order of their ids. With what
	// the caller knows about its references, it finds orphans: a blob may exist
	// although Commit failed or the process died after it. A blob is an orphan only
	// if it is older than an upload may take, and the commit of its reference.
	List(ctx context.Context, page paging.Request) (paging.Page[Info], error)

	// Sweep removes the leftovers of uploads that began before the given time and
	// were neither committed nor aborted, because their process died, and returns
	// how many there were. Such an upload can no longer be committed, so the time
	// must be longer ago than an upload may take.
	Sweep(ctx context.Context, before time.Time) (int, error)
}

// Upload is a blob that is being written. It is not safe for concurrent use. After
// a Write that failed it can only be aborted.
type Upload interface {
	// Write appends bytes in any quantity.
	io.Writer
	// Commit makes the blob durable and visible, all of it or nothing. After an
	// error it is possible that the blob exists: the caller must not refer to it,
	// and finds it with List.
	Commit() error
	// Abort discards the upload, also after its context has ended. After Commit or
	// Abort it does nothing, so it can be deferred.
	Abort() error
}

// MaxPage is the largest number of blobs that List returns at once.
const MaxPage = 1000

// PageLimit returns the number of blobs on a page that a caller asked for: between
// 1 and MaxPage.
func PageLimit(page paging.Request) int { return min(max(page.Limit, 1), MaxPage) }
