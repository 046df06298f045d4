// Package file owns files: their names, types and sizes, what refers to them, how
// long they are kept and the limits that apply. Their bytes are blobs (package blob);
// equal bytes of a workspace are stored once. What a reference looks like to an
// expression is in package expr.
package file

import (
	"time"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/expr"
)

// File is a stored file. It never changes.
type File struct {
	ID          string
	WorkspaceID string
	Name        string // a plain file name, never a path
	Type        string // a media type
	Size        int64
	SHA256      string // in hex
	// Blob has the bytes. Files with equal bytes share one.
	Blob blob.ID
	// List describes a list file; nil for other files.
	List      *expr.FileList
	CreatedAt time.Time
	// ExpiresAt is when the file is deleted; nil as long as something refers to it.
	ExpiresAt *time.Time
}

// Value returns the reference to the file as expressions see it.
func (f File) Value() *expr.File {
	return expr.NewFile(expr.File{ID: f.ID, Name: f.Name, Type: f.Type, Size: f.Size, SHA256: f.SHA256, List: f.List})
}

// UnreferencedFor is how long an upload is kept that nothing refers to.
const UnreferencedFor = 24 * time.Hour
