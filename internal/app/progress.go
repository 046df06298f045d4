package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// stalledError is the error of a backup that makes no progress.
type stalledError struct {
	limit time.Duration
	why   string
}

func (e stalledError) Error() string {
	return fmt.Sprintf("the backup was stopped because it made no progress for %s: %s", e.limit, e.why)
}

// progress ends a context when nothing was reported to it for a while.
type progress struct {
	limit time.Duration
	timer *time.Timer
}

// withProgress returns a context that ends with a stalledError. The caller must call stop.
func withProgress(ctx context.Context, limit time.Duration) (_ context.Context, p progress, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() {
		cancel(stalledError{limit, "the disk or the storage of files does not respond"})
	})
	return ctx, progress{limit, timer}, func() {
		timer.Stop()
		cancel(nil)
	}
}

func (p progress) report() { p.timer.Reset(p.limit) }

// writer returns a writer that reports what is written. It has its own limit on how long
// a write may take.
func (p progress) writer(to io.Writer) io.Writer {
	return writerFunc(func(data []byte) (int, error) {
		p.timer.Stop()
		defer p.report()
		return to.Write(data)
	})
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(data []byte) (int, error) { return w(data) }

// impatientWriter fails if nothing can be written for a while, for example because nobody
// reads from a pipe. It leaves such a write behind, so the process should exit then.
type impatientWriter struct {
	to    io.Writer
	limit time.Duration
}

// maxWrite is how much has to be written within the limit of an impatientWriter.
const maxWrite = 4 << 10

// Write implements io.Writer.
func (w impatientWriter) Write(data []byte) (written int, err error) {
	for part := range slices.Chunk(data, maxWrite) {
		n, err := w.write(bytes.Clone(part)) // the caller may change it after an error
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}

func (w impatientWriter) write(data []byte) (int, error) {
	type outcome struct {
		n   int
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		n, err := w.to.Write(data)
		done <- outcome{n, err}
	}()
	timer := time.NewTimer(w.limit)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.n, o.err
	case <-timer.C:
		return 0, stalledError{w.limit, "its output is not being read"}
	}
}
