package auth

import (
	"context"
	"crypto/subtle"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

// touchInterval is the minimum time between writes of a key's last use.
const touchInterval = time.Minute

// Authenticate returns the actor for the value of an API key.
func (s *Service) Authenticate(ctx context.Context, token string) (Actor, error) {
	invalid := fault.New(fault.Unauthorized, "the API key is not valid: it is unknown, revoked or expired")
	lookup, ok := parseToken(token)
	if !ok {
		return Actor{}, invalid
	}
	entry, found, err := s.lookup(ctx, lookup)
	if err != nil {
		return Actor{}, err
	}
	if !found || subtle.ConstantTimeCompare(entry.key.Hash, hashToken(token)) != 1 {
		return Actor{}, invalid
	}
	now := clock.Now()
	if entry.key.ExpiresAt != nil && !entry.key.ExpiresAt.After(now) {
		return Actor{}, invalid
	}
	s.cache.Touch(entry.key.ID, now)
	return Actor{Workspace: entry.workspace, Type: audit.ActorKey, ID: entry.key.ID, Label: entry.key.Name, Scopes: entry.key.Scopes}, nil
}

func (s *Service) lookup(ctx context.Context, lookup string) (entry cachedKey, found bool, err error) {
	readAt := clock.Now()
	if entry, found = s.cache.Get(lookup, readAt); found {
		return entry, true, nil
	}
	generation := s.cache.Generation()
	key, workspace, err := s.store.KeyByLookup(ctx, lookup)
	if err != nil || key == nil {
		return cachedKey{}, false, err
	}
	entry = cachedKey{*key, *workspace}
	s.cache.Put(lookup, entry, readAt, generation)
	return entry, true, nil
}

// FlushLastUsed writes the times of last use that are due. After an error, the
// next call writes them.
func (s *Service) FlushLastUsed(ctx context.Context) error {
	used := s.cache.TakeUnwritten()
	if len(used) == 0 {
		return nil
	}
	err := s.store.TouchKeys(ctx, used)
	if err != nil {
		s.cache.Restore(used)
	}
	return err
}

// cachedKey is what a token stands for.
type cachedKey struct {
	key       Key
	workspace Workspace
}
