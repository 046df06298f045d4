// Package auth owns who may do what: workspaces and their plans, API keys with
// scopes, and the actor that every use case acts for. It does not own HTTP nor
// the counting of requests.
package auth

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

// Workspace is a tenant: everything else belongs to exactly one.
type Workspace struct {
	ID                string
	Name              string
	Plan              Plan
	RequestsPerMinute int
	First             bool // the installation's first workspace
	CreatedAt         time.Time
	UpdatedAt         time.Time
}

// Key is an API key without its value, which only its owner knows.
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

// Prefix is the part of the value that may be shown, to tell keys apart.
func (k Key) Prefix() string { return tokenPrefix + k.Lookup }

// Actor is who a use case acts for.
type Actor struct {
	Workspace Workspace
	Type      string
	ID        string
	Scopes    []Scope
	RequestID string
}

// Limits are the bounds of the actor's plan.
func (a Actor) Limits() Limits { return a.Workspace.Plan.Limits() }

// Operator tells whether the actor runs the installation: an admin of its
// first workspace.
func (a Actor) Operator() bool { return a.Workspace.First && Grants(a.Scopes, Admin) }

// Name is how the actor is recorded beside what it made; empty for the service
// itself.
func (a Actor) Name() string {
	if a.ID != "" || a.Type == audit.ActorSystem {
		return a.ID
	}
	return a.Type
}

// Did makes the audit entry of a deed in the actor's own workspace.
func (a Actor) Did(action, targetType, targetID string, details map[string]any) audit.Entry {
	now := clock.Now()
	return audit.Entry{
		ID: uid.At(uid.Audit, now), WorkspaceID: a.Workspace.ID, At: now,
		ActorType: a.Type, ActorID: a.ID, RequestID: a.RequestID,
		Action: action, TargetType: targetType, TargetID: targetID, Details: details,
	}
}

// Store keeps workspaces and keys. A method is one atomic unit; a pointer
// result is nil when there is no such row.
type Store interface {
	// Install writes the first workspace unless there is one already.
	Install(ctx context.Context, in Installation) (installed bool, err error)
	// InsertWorkspace also makes its owner a member, if a user makes it.
	InsertWorkspace(ctx context.Context, w Workspace, dataKey []byte, first Key, ownerID string, entry audit.Entry) error
	Workspace(ctx context.Context, id string) (*Workspace, error)
	Workspaces(ctx context.Context, page paging.Request) (paging.Page[Workspace], error)
	UpdateWorkspace(ctx context.Context, w Workspace, was time.Time, entry audit.Entry) (updated bool, err error)

	// InsertKey refuses, with false, when the workspace holds atMost keys.
	InsertKey(ctx context.Context, k Key, atMost int, entry audit.Entry) (inserted bool, err error)
	Key(ctx context.Context, workspaceID, id string) (*Key, error)
	Keys(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[Key], error)
	RevokeKey(ctx context.Context, workspaceID, id string, at time.Time, entry audit.Entry) (revoked bool, err error)
	// KeyByLookup finds a live key and its workspace by the id inside its value.
	KeyByLookup(ctx context.Context, lookup string) (*Key, *Workspace, error)
	TouchKeys(ctx context.Context, usedAt map[string]time.Time) error
}

// Installation is what a first start writes.
type Installation struct {
	Workspace Workspace
	DataKey   []byte
	KeyCheck  []byte
	AdminKey  Key
	Entry     audit.Entry
}

// Sealer makes the data key of a new workspace.
type Sealer interface {
	NewDataKey(workspaceID string) []byte
	Check() []byte
}

// Service has the use cases of workspaces and keys.
type Service struct {
	store Store
	vault Sealer
	cache *keyCache
}

// NewService makes a service on a store.
func NewService(store Store, vault Sealer) *Service {
	return &Service{store: store, vault: vault, cache: newKeyCache()}
}
