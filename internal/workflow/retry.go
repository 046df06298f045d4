package workflow

import (
	"time"

	"github.com/stepmill/stepmill/internal/duration"
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

// timeout checks the bound of an attempt.
func (c *compiler) timeout(at string, step Step) time.Duration {
	if step.Timeout == "" {
		return defaultTimeout
	}
	return c.length(at+"/timeout", step.Timeout, maxTimeout)
}

// policy checks how a step is tried again.
func (c *compiler) policy(at string, step Step) Policy {
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
		p.Initial = c.length(at+"/initial", r.Initial, MaxDelay)
	}
	if r.MaxDelay != "" {
		p.MaxDelay = c.length(at+"/max_delay", r.MaxDelay, MaxDelay)
	}
	return p
}

// length reads a length of time up to a bound.
func (c *compiler) length(at, text string, most time.Duration) time.Duration {
	d, err := duration.Parse(text)
	switch {
	case err != nil:
		c.report(at, "", "%s", err)
	case d > most:
		c.report(at, "", "must be at most %s", duration.Format(most))
	}
	return d
}
