package workflow

import (
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

// Policy is a Retry with its defaults filled in.
type Policy struct {
	MaxAttempts int
	Initial     time.Duration
	Factor      float64
	MaxDelay    time.Duration
}

const (
	defaultTimeout = time.Minute
	maxTimeout     = 15 * time.Minute
	maxAttempts    = 20
	maxFactor      = 10
	// MaxDelay is the longest time between two attempts.
	MaxDelay = 24 * time.Hour
)

func defaultPolicy() Policy {
	return Policy{MaxAttempts: 5, Initial: time.Second, Factor: 2, MaxDelay: 5 * time.Minute}
}

// stepTimeout returns the timeout of one attempt.
func (c *compiler) stepTimeout(at string, step Step) time.Duration {
	if step.Timeout == "" {
		return defaultTimeout
	}
	return c.parseDuration(at+"/timeout", step.Timeout, maxTimeout)
}

// retryPolicy checks the retry of a step and fills in the defaults.
func (c *compiler) retryPolicy(at string, step Step) Policy {
	p := defaultPolicy()
	r := step.Retry
	if r == nil {
		return p
	}
	at += "/retry"
	if r.MaxAttempts != 0 {
		p.MaxAttempts = r.MaxAttempts
	}
	if p.MaxAttempts < 1 || p.MaxAttempts > maxAttempts {
		c.report(at+"/max_attempts", "", "must be between 1 and %d", maxAttempts)
	}
	if r.Factor != 0 {
		p.Factor = r.Factor
	}
	if p.Factor < 1 || p.Factor > maxFactor {
		c.report(at+"/factor", "", "must be between 1 and %d", maxFactor)
	}
	if r.Initial != "" {
		p.Initial = c.parseDuration(at+"/initial", r.Initial, MaxDelay)
	}
	if r.MaxDelay != "" {
		p.MaxDelay = c.parseDuration(at+"/max_delay", r.MaxDelay, MaxDelay)
	}
	return p
}

// parseDuration parses a duration and reports one above the limit.
func (c *compiler) parseDuration(at, text string, limit time.Duration) time.Duration {
	d, err := clock.ParseDuration(text)
	switch {
	case err != nil:
		c.report(at, "", "%s", err)
	case d > limit:
		c.report(at, "", "must be at most %s", clock.FormatDuration(limit))
	}
	return d
}
