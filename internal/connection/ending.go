package connection

import (
	"context"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
)

// EndingStore stores when consents end.
type EndingStore interface {
	// EndingConnections returns the connections of all workspaces whose consent ends soon, the
	// most urgent first, except for those that are broken or that were warned about before.
	EndingConnections(ctx context.Context, now time.Time, limit int) ([]Connection, error)
	// WarnConnection stores the event of a consent that ends soon, once, if the connection still
	// has the epoch.
	WarnConnection(ctx context.Context, c Connection, warning event.Event) (warned bool, err error)
}

const (
	// endingNotice is how long before the end of a consent people are warned, unless a quarter of
	// its life is shorter.
	endingNotice = 7 * 24 * time.Hour
	// endingBatch limits the connections that one CheckEnding looks at.
	endingBatch = 100
)

// setToken sets the token of a connection, which may be nil, and the times that depend on it.
func (c *opened) setToken(token *Token) {
	before, warnAt := c.ConsentEndsAt, c.WarnAt
	c.secrets.Token, c.ExpiresAt, c.ConsentEndsAt, c.WarnAt = token, nil, nil, nil
	if token == nil {
		return
	}
	c.ExpiresAt = token.ExpiresAt
	if c.auth.NeedsConsent() {
		c.ConsentEndsAt = token.accessEndsAt()
	}
	switch end := c.ConsentEndsAt; {
	case end == nil:
	case before != nil && end.Sub(*before).Abs() <= time.Minute: // the same end, computed from another response
		c.WarnAt = warnAt
	default:
		warnAt := end.Add(-min(endingNotice, end.Sub(token.IssuedAt)/4))
		c.WarnAt = &warnAt
	}
}

// accessEndsAt returns when a token can no longer be renewed; nil if that is unknown.
func (t *Token) accessEndsAt() *time.Time {
	if t.Refresh == "" {
		return t.ExpiresAt
	}
	return t.RefreshEndsAt
}

// CheckEnding renews connections whose consent ends soon, because that often extends the consent
// and nothing else may use them before. It warns people about those that end nevertheless.
func (r *Renewer) CheckEnding(ctx context.Context) error {
	ending, err := r.ending.EndingConnections(ctx, clock.Now(), endingBatch)
	if err != nil {
		return err
	}
	var failed []error
	for _, c := range ending {
		if err := r.checkEnding(ctx, c); err != nil && ctx.Err() == nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (r *Renewer) checkEnding(ctx context.Context, c Connection) error {
	now, err := r.repo.reopen(ctx, c)
	if err != nil {
		return err
	}
	if now.auth.Exchange != nil || now.secrets.Token != nil && now.secrets.Token.Refresh != "" {
		limited, cancel := context.WithTimeout(ctx, renewalTime)
		defer cancel()
		if renewed, err := r.renew(limited, now); err == nil {
			now = renewed
		} // otherwise warn of the end that is known
	}
	if now.WarnAt == nil || now.WarnAt.After(clock.Now()) {
		return nil
	}
	warning, err := endingEvent(now.Connection, clock.Now())
	if err != nil {
		return err
	}
	_, err = r.ending.WarnConnection(ctx, now.Connection, warning)
	return err
}
