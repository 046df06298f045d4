package action

import (
	"context"
	"io"

	"github.com/stepmill/stepmill/internal/expr"
)

// Files creates and reads files on behalf of one call of an action.
type Files interface {
	// Create begins a file. A file belongs to the run once the result of the call
	// has been committed; if the call fails, nothing remains of it. The limits of the
	// plan are [*Failure]s, of Create or of Write.
	Create(ctx context.Context, f NewFile) (FileWriter, error)
	// Open reads a file from an offset to its end.
	Open(ctx context.Context, f *expr.File, offset int64) (io.ReadCloser, error)
}

// NewFile describes a file that is being created.
type NewFile struct {
	Name string // made safe: any text is allowed
	Type string // a media type; made safe as well
	// List is set for a list file, with the number of its items and the first of
	// them; it is read when the file is finished.
	List *expr.FileList
}

// FileWriter writes a file. It is not safe for concurrent use.
type FileWriter interface {
	io.Writer
	// Finish makes the bytes durable and returns the reference.
	Finish() (*expr.File, error)
	// Abort discards the file. After Finish it does nothing, so it can be deferred.
	Abort()
}
