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
		if err := a.awaitDisk(ctx); err != nil {
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

// awaitDisk returns nil when the disk has accepted a write.
func (a *Admin) awaitDisk(ctx context.Context) error {
	accepted := make(chan error, 1)
	go func() { accepted <- a.core.store.Probe(ctx) }()
	var over <-chan time.Time
	if a.diskTimeout > 0 {
		over = time.After(a.diskTimeout)
	}
	select {
	case err := <-accepted:
		return err
	case <-over:
		return errors.New("the server's disk does not respond; nothing was created")
	case <-ctx.Done():
		return ctx.Err()
	}
}
