package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
)

// showFirst creates something whose secret is shown only once. A flush that hangs cannot
// be canceled: what it writes would exist later, although the command that would have
// printed the secret is gone. So create calls its argument with the secret before it
// writes anything, and that shows the secret when the disk has accepted a write. As long
// as the disk does not respond, nothing is shown and nothing is created.
func (a *Admin) showFirst(ctx context.Context, what string, show auth.Show, create func(auth.Show) error) error {
	shown := false
	err := create(func(value string) error {
		if err := a.onDisk(ctx, a.core.store.Installation.Probe); errors.Is(err, errDiskStalled) {
			return fmt.Errorf("%w; nothing was created", err)
		} else if err != nil {
			return err
		}
		shown = true
		return show(value)
	})
	if err != nil && shown {
		return fmt.Errorf("do not use the %s printed above: %w", what, cliError(err))
	}
	return cliError(err)
}

// errDiskStalled is returned by onDisk.
var errDiskStalled = errors.New("the server's disk does not respond")

// onDisk calls write and returns its result. If the disk does not respond for too long, it
// returns errDiskStalled and leaves write to finish on its own.
func (a *Admin) onDisk(ctx context.Context, write func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- write(ctx) }()
	var over <-chan time.Time
	if a.diskTimeout > 0 {
		over = time.After(a.diskTimeout)
	}
	select {
	case err := <-done:
		return err
	case <-over:
		return errDiskStalled
	case <-ctx.Done():
		return ctx.Err()
	}
}
