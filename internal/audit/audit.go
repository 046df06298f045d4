// Package audit owns the record of who did what: entries written in the
// transaction of the deed itself, and the list of them. What counts as a deed
// is decided where it is done.
package audit

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/paging"
)

// The kinds of actors.
const (
	ActorKey    = "api_key"
	ActorUser   = "user" // somebody who is signed in
	ActorCLI    = "cli"
	ActorSystem = "system"
	ActorLink   = "link" // whoever has the link of a step
)

// Entry is one deed.
type Entry struct {
	ID          string
	WorkspaceID string
	At          time.Time
	ActorType   string
	ActorID     string
	Action      string
	TargetType  string
	TargetID    string
	Details     map[string]any
	RequestID   string
}

// Filter narrows a list of entries; empty fields do not.
type Filter struct{ Action, TargetID string }

// Store keeps entries. Writing is part of the store methods of the deeds.
type Store interface {
	AuditEntries(ctx context.Context, workspaceID string, filter Filter, page paging.Request) (paging.Page[Entry], error)
}

// Service reads the record.
type Service struct{ store Store }

// NewService makes a service on a store.
func NewService(store Store) *Service { return &Service{store: store} }

// List returns entries of a workspace, newest first.
func (s *Service) List(ctx context.Context, workspaceID string, filter Filter, page paging.Request) (paging.Page[Entry], error) {
	return s.store.AuditEntries(ctx, workspaceID, filter, page)
}
