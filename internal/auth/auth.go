// Package auth owns authorization: workspaces and their plans, API keys with
// scopes, and the actor on whose behalf every use case runs. It does not own
// HTTP or rate limiting.
package auth

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/credcache"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/uid"
)

// Workspace is a tenant. Everything else belongs to exactly one workspace.
type Workspace struct {
	ID                string
	Name              string
	Plan              Plan
	RequestsPerMinute int
	First             bool // the installation's first workspace
	CreatedAt         time.Time
	UpdatedAt         time.Time
}

// Key is an API key without its value, which is not stored.
type Key struct {
	ID          string
	WorkspaceID string
	Name        string
	Scopes      []Scope
	Lookup      string // the id inside the value
	Hash        []byte // SHA-256 of the value
	CreatedAt   time.Time
	CreatedBy   string
	ExpiresAt   *time.Time
	LastUsedAt  *time.Time
}

// Prefix returns the part of the value that may be shown to tell keys apart.
func (k Key) Prefix() string { return tokenPrefix + k.Lookup }

// Actor is the caller on whose behalf a use case runs.
type Actor struct {
	Workspace Workspace
	Type      string
	ID        string
	// Label is the display name of the actor: that of the key or the user.
	Label     string
	Scopes    []Scope
	RequestID string
}

// Limits returns the limits of the actor's plan.
func (a Actor) Limits() Limits { return a.Workspace.Plan.Limits() }

// IsOperator reports whether the actor may manage the installation, as an admin of
// its first workspace.
func (a Actor) IsOperator() bool { return a.Workspace.First && Grants(a.Scopes, Admin) }

// Name returns the value of fields such as CreatedBy for the actor. It is empty
// for the service itself.
func (a Actor) Name() string {
	if a.ID != "" || a.Type == audit.ActorSystem {
		return a.ID
	}
	return a.Type
}

// AuditEntry returns the audit entry of an action in the actor's workspace.
func (a Actor) AuditEntry(action, targetType, targetID string, details map[string]any) audit.Entry {
	now := clock.Now()
	return audit.Entry{
		ID: uid.At(uid.Audit, now), WorkspaceID: a.Workspace.ID, At: now,
		ActorType: a.Type, ActorID: a.ID, RequestID: a.RequestID,
		Action: action, TargetType: targetType, TargetID: targetID, Details: details,
	}
}

// Store persists workspaces and keys. Each method is one transaction. A pointer
// result is nil if there is no such row.
type Store interface {
	In(tx txn.Tx) Store
	// Install inserts the first workspace if there is none.
	Install(ctx context.Context, in Installation) (installed bool, err error)
	// InsertWorkspace also makes the user with ownerID its owner, unless it is "".
	InsertWorkspace(ctx context.Context, w Workspace, dataKey []byte, first Key, ownerID string, entry audit.Entry) error
	Workspace(ctx context.Context, id string) (*Workspace, error)
	Workspaces(ctx context.Context, page paging.Request) (paging.Page[Workspace], error)
	// UpdateWorkspace returns false if the workspace was not last updated at
	// updatedAt.
	UpdateWorkspace(ctx context.Context, w Workspace, updatedAt time.Time, entry audit.Entry) (updated bool, err error)

	// InsertKey returns false if the workspace has limit keys.
	InsertKey(ctx context.Context, k Key, limit int, entry audit.Entry) (inserted bool, err error)
	Key(ctx context.Context, workspaceID, id string) (*Key, error)
	Keys(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[Key], error)
	RevokeKey(ctx context.Context, workspaceID, id string, at time.Time, entry audit.Entry) (revoked bool, err error)
	// KeyByLookup returns an unrevoked key and its workspace by the id inside its
	// value.
	KeyByLookup(ctx context.Context, lookup string) (*Key, *Workspace, error)
	TouchKeys(ctx context.Context, usedAt map[string]time.Time) error
}

// Installation is the data that the first start of an installation writes.
type Installation struct {
	Workspace Workspace
	DataKey   []byte
	KeyCheck  []byte
	AdminKey  Key
	Entry     audit.Entry
}

// Sealer creates the data keys of workspaces.
type Sealer interface {
	NewDataKey(workspaceID string) []byte
	Check() []byte
}

// Service implements the use cases of workspaces and API keys.
type Service struct {
	store Store
	vault Sealer
	cache *credcache.Cache[cachedKey]
}

// NewService returns a service that uses the given store and vault.
func NewService(store Store, vault Sealer) *Service {
	return &Service{store: store, vault: vault, cache: credcache.New[cachedKey](touchInterval)}
}

// In returns the service as a part of a transaction.
func (s *Service) In(tx txn.Tx) *Service {
	bound := *s
	bound.store = s.store.In(tx)
	return &bound
}
