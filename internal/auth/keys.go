package auth

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

const maxNameLength = 100

// NewKey is the input for creating a key.
type NewKey struct {
	Name      string
	Scopes    []string
	ExpiresAt *time.Time
	// Show is called before the key is stored; nil: nothing is.
	Show Show
}

// Show shows a value that nobody can look up later. It is called before what the value
// gives access to is stored, which therefore never exists unless somebody has the value.
// If it fails, nothing is stored.
type Show func(value string) error

// Call calls the function, unless it is nil.
func (s Show) Call(value string) error {
	if s == nil {
		return nil
	}
	return s(value)
}

// CreateKey creates a key in the actor's workspace and returns it with its value,
// which is not stored.
func (s *Service) CreateKey(ctx context.Context, actor Actor, in NewKey) (Key, string, error) {
	key, token, err := makeKey(actor, in)
	if err != nil {
		return Key{}, "", err
	}
	limit := actor.Limits().APIKeys
	if err := s.showKey(ctx, actor, in.Show, token, limit); err != nil {
		return Key{}, "", err
	}
	entry := actor.AuditEntry("api_key.created", "api_key", key.ID, map[string]any{"name": key.Name, "scopes": key.Scopes})
	inserted, err := s.store.InsertKey(ctx, key, limit, entry)
	if err != nil {
		return Key{}, "", err
	}
	if !inserted {
		return Key{}, "", tooManyKeys(actor, limit)
	}
	return key, token, nil
}

// showKey shows the value of a key that is about to be stored, if it is likely to be
// stored.
func (s *Service) showKey(ctx context.Context, actor Actor, show Show, token string, limit int) error {
	if show == nil {
		return nil
	}
	existing, err := s.store.Keys(ctx, actor.Workspace.ID, paging.Request{Limit: limit})
	if err != nil {
		return err
	}
	if len(existing.Items) >= limit {
		return tooManyKeys(actor, limit)
	}
	return show(token)
}

func tooManyKeys(actor Actor, limit int) error {
	return fault.New(fault.PlanLimitExceeded, "the %s plan allows %d API keys; revoke one first", actor.Workspace.Plan, limit)
}

func makeKey(actor Actor, in NewKey) (Key, string, error) {
	name, err := fault.Name("/name", in.Name, maxNameLength)
	if err != nil {
		return Key{}, "", err
	}
	scopes, err := ParseScopes(in.Scopes)
	if err != nil {
		return Key{}, "", fault.Field("/scopes", "%s", err)
	}
	if len(scopes) == 0 {
		return Key{}, "", fault.Field("/scopes", "must contain at least one of read, write, execute, admin")
	}
	now := clock.Now()
	if in.ExpiresAt != nil && !in.ExpiresAt.After(now) {
		return Key{}, "", fault.Field("/expires_at", "must be in the future")
	}
	token, lookup := newToken()
	return Key{
		ID: uid.At(uid.Key, now), WorkspaceID: actor.Workspace.ID, Name: name, Scopes: scopes,
		Lookup: lookup, Hash: hashToken(token), CreatedAt: now, CreatedBy: actor.Name(), ExpiresAt: in.ExpiresAt,
	}, token, nil
}

// GetKey returns a key of the actor's workspace.
func (s *Service) GetKey(ctx context.Context, actor Actor, id string) (Key, error) {
	if !uid.Valid(uid.Key, id) {
		return Key{}, keyNotFound(id)
	}
	key, err := s.store.Key(ctx, actor.Workspace.ID, id)
	return fault.Found(key, err, keyNotFound, id)
}

// ListKeys lists the unrevoked keys of the actor's workspace.
func (s *Service) ListKeys(ctx context.Context, actor Actor, page paging.Request) (paging.Page[Key], error) {
	return s.store.Keys(ctx, actor.Workspace.ID, page)
}

// RevokeKey revokes a key permanently.
func (s *Service) RevokeKey(ctx context.Context, actor Actor, id string) error {
	if !uid.Valid(uid.Key, id) {
		return keyNotFound(id)
	}
	entry := actor.AuditEntry("api_key.revoked", "api_key", id, nil)
	revoked, err := s.store.RevokeKey(ctx, actor.Workspace.ID, id, entry.At, entry)
	if err != nil {
		return err
	}
	if !revoked {
		return keyNotFound(id)
	}
	s.cache.Drop(func(entry cachedKey) bool { return entry.key.ID == id })
	return nil
}

func keyNotFound(id string) error {
	return fault.New(fault.APIKeyNotFound, "there is no API key %q", id)
}
