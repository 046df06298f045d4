// Package backup reads and writes the file format of backups: a tar file with the
// database, the blobs in the order of their ids, and a checksum as the last entry,
// which proves that the file is complete. Unpacked, it is a data directory. The
// package does not know what is in the database, nor where blobs are stored.
package backup

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/stepmill/stepmill/internal/blob"
)

// The names of the entries. Blobs are named as a directory of blobs stores them.
const (
	databaseName = "stepmill.db"
	checksumName = "stepmill.sha256"
	blobFolder   = "files/"
	shardLength  = 2
)

// ErrDamaged means that a file differs from what was written: a part is missing or was
// changed.
var ErrDamaged = errors.New("the backup is damaged or incomplete")

// Entry is a part of a backup.
type Entry struct {
	Blob blob.ID // empty: the database
	Size int64
}

func (e Entry) name() string {
	if e.Blob == "" {
		return databaseName
	}
	return blobFolder + string(e.Blob[:shardLength]) + "/" + string(e.Blob)
}

// checksum is the SHA-256 of all entries: their names, sizes and contents.
type checksum struct{ hash.Hash }

func newChecksum() checksum { return checksum{sha256.New()} }

func (c checksum) begin(e Entry) { _, _ = fmt.Fprintf(c, "%s %d\n", e.name(), e.Size) }

// line returns the content of the last entry.
func (c checksum) line() []byte { return fmt.Appendf(nil, "%x\n", c.Sum(nil)) }

// magic is what every header of a tar file contains, from magicOffset on.
const (
	magic       = "ustar"
	magicOffset = 257
	// DetectSize is how many bytes Detect needs.
	DetectSize = magicOffset + len(magic)
)

// Detect reports whether a file that starts with these bytes is a backup, as opposed to
// a database.
func Detect(start []byte) bool {
	return len(start) >= DetectSize && string(start[magicOffset:DetectSize]) == magic
}
