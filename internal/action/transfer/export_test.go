package transfer

import (
	"context"
	"io"

	"github.com/stepmill/stepmill/internal/action"
)

// Open returns what is sent of a body.
func Open(b Body, files action.Files) (io.ReadCloser, error) {
	return b.open(context.Background(), files), nil
}
