package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/descriptor"
	"github.com/stepmill/stepmill/internal/fault"
)

// explain adds what was attempted to the error of a file operation. An error about
// the state of the disk becomes a fault.
func explain(operation string, err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.New(fault.StorageFull, "the server's disk is full; the file was not stored").Because(err)
	case errors.Is(err, syscall.EROFS):
		return fault.New(fault.StorageReadOnly, "the server's disk is read-only; nothing was changed").Because(err).After(10 * time.Second)
	case descriptor.IsShortage(err):
		return fault.New(fault.Unavailable, "the server has no file descriptors left; try again").Because(err).After(time.Second)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w: %w", operation, blob.ErrDenied, err)
	}
	return fmt.Errorf("%s: %w", operation, err)
}
