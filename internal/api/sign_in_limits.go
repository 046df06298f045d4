package api

import (
	"context"
	"net/netip"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/internal/transport"
)

type signInLimits struct {
	accounts         *account.Service
	attempts         *ratelimit.Limiter
	preauthPerMinute int
}

// The limits on sign-in attempts per minute. They count attempts before the
// password is checked: concurrent ones could otherwise exceed a limit on failures.
const (
	// signInCost is how many failed authentications an attempt counts as for the
	// network it comes from: a password is easier to guess than a key.
	signInCost = 20
	// attemptsPerAccountAndNetwork limits attempts for an e-mail address from one
	// network. A limit on the address alone would allow anyone to lock a user out.
	attemptsPerAccountAndNetwork = 10
	// attemptsPerAccount limits attempts for an e-mail address from many networks,
	// except networks in which the user has a session.
	attemptsPerAccount = 100
)

// count counts a sign-in attempt by network and, if an e-mail address is
// given, by address. It returns an error if a limit is exceeded. Nothing depends
// on whether the address belongs to a user, except for callers in a network in
// which that user has a session.
func (h *signInLimits) count(ctx context.Context, email string) error {
	now, from := clock.Now(), transport.CallerOf(ctx).Network
	state, ok, _ := h.attempts.Take(ctx, "network "+from, max(1, h.preauthPerMinute/signInCost), now)
	if !ok {
		return transport.RateLimited("too many sign-in attempts: this IP address may make %d per minute", state)
	}
	if email == "" {
		return nil
	}
	if state, ok, _ = h.attempts.Take(ctx, "network and email "+from+" "+email, attemptsPerAccountAndNetwork, now); !ok {
		return transport.RateLimited("too many sign-in attempts: this IP address may try an e-mail address %d times per minute", state)
	}
	if state, ok, _ = h.attempts.Take(ctx, "email "+email, attemptsPerAccount, now); ok {
		return nil
	}
	known, err := h.hasSessionIn(ctx, email, from)
	if err != nil || known {
		return err
	}
	return transport.RateLimited("too many sign-in attempts: this e-mail address may be tried %d times per minute from all IP addresses together", state)
}

func (h *signInLimits) hasSessionIn(ctx context.Context, email, from string) (bool, error) {
	addresses, err := h.accounts.SessionAddresses(ctx, email)
	if err != nil {
		return false, err
	}
	for _, text := range addresses {
		if addr, err := netip.ParseAddr(text); err == nil && transport.Network(addr) == from {
			return true, nil
		}
	}
	return false, nil
}
