package engine

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/listfile"
	"github.com/stepmill/stepmill/internal/run"
)

// windowBytes is how much of a list file is held in memory, in addition to the items
// of open rounds.
const windowBytes = 256 << 10

// fileItems reads the items of a list file, a window at a time. Between two reads
// nothing is open.
type fileItems struct {
	file   *expr.File
	first  int      // index of the first item in the window
	window [][]byte // items as JSON
	next   int64    // offset in the file of the item after the window
}

// openFile opens a file at an offset.
type openFile func(ctx context.Context, f *expr.File, offset int64) (io.ReadCloser, error)

// at returns an item. Items are read in order; an earlier one than before, which only a
// retry of a run can need, is read from the beginning of the file again.
func (l *fileItems) at(ctx context.Context, open openFile, n int) (any, error) {
	if n < l.first {
		l.first, l.window, l.next = 0, nil, 0
	}
	for n >= l.first+len(l.window) {
		if err := l.read(ctx, open); err != nil {
			return nil, err
		}
	}
	return expr.FromJSON(l.window[n-l.first])
}

// read reads the next window.
func (l *fileItems) read(ctx context.Context, open openFile) error {
	from, err := open(ctx, l.file, l.next)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	r := listfile.NewReader(from)
	var window [][]byte
	size := int64(0)
	for size < windowBytes {
		item, err := r.Next()
		if errors.Is(err, io.EOF) && window != nil {
			break
		}
		if err != nil {
			return fmt.Errorf("read item %d of a list file: %w", l.first+len(l.window)+len(window), err)
		}
		window = append(window, append([]byte(nil), item...))
		size += int64(len(item)) + 1
	}
	l.first += len(l.window)
	l.window, l.next = window, l.next+size
	return nil
}

// readItems reads the items of the open rounds of a loop over a list file. It returns
// false if the file is not recorded yet, the run was aborted or the engine stops.
func (d *driver) readItems(ctx context.Context, b block) bool {
	loop, ok := b.(*foreach)
	if !ok || loop.file == nil {
		return true
	}
	for _, round := range inOrder(loop.frames) {
		if !round.unread {
			continue
		}
		if d.changes.awaitFile(loop.file.file.ID) {
			return false
		}
		var failed error
		if !d.retryFiles(ctx, "read the items of a loop", func() (err error) {
			round.env.Loop.Item, err = loop.file.at(ctx, d.openFile, round.n)
			return err
		}, &failed) {
			return false
		}
		if failed != nil {
			loop.failUnread(d.state.failureOf(loop.of.step(), failed))
			return true
		}
		round.unread = false
	}
	return true
}

func (d *driver) openFile(ctx context.Context, f *expr.File, offset int64) (io.ReadCloser, error) {
	return d.engine.files.Open(ctx, d.state.snap.WorkspaceID, f.ID, offset, f.Size-offset)
}

// failUnread makes the loop fail because items cannot be read. Rounds without an item do
// not continue.
func (b *foreach) failUnread(failure run.Failure) {
	b.fail(failure)
	for n, round := range b.frames {
		if round.unread {
			b.state.cancel(round)
			delete(b.frames, n)
		}
	}
}

// retryFiles calls do until it succeeds or fails for good, with an error other than that
// the storage of files is not available. It returns false if the run was aborted or the
// engine stops; the run must then be released.
func (d *driver) retryFiles(ctx context.Context, operation string, do func() error, failed *error) bool {
	done := d.retryStore(ctx, operation, func() error {
		err := do()
		if err == nil || ctx.Err() != nil {
			return err
		}
		failure := fileFailure(err)
		if of, ok := errors.AsType[*action.Failure](failure); ok && of.Code == string(fault.Unavailable) {
			return err
		}
		*failed = failure
		return nil
	})
	d.stopped = d.stopped || !done
	return done
}
