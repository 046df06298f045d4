// Package audit owns the audit log. Entries are written in the transaction of the
// action they record; the packages that perform the actions decide which ones are
// recorded.
package audit

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/paging"
)

// Retention is how long entries are kept.
const Retention = 366 * 24 * time.Hour

// The types of actors.
const (
	ActorKey    = "api_key"
	ActorUser   = "user" // signed in
	ActorCLI    = "cli"
	ActorSystem = "system"
	ActorLink   = "link" // anyone with the link of a step
)

// Entry records one action.
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
	// ActorName and TargetName are the present names, "" if they are not known. They are not
	// stored.
	ActorName  string
	TargetName string
}

// Filter restricts a list of entries. Empty fields match every entry.
type Filter struct{ Action, TargetID string }

// Store reads entries. They are written by the store methods of the actions.
type Store interface {
	AuditEntries(ctx context.Context, workspaceID string, filter Filter, page paging.Request) (paging.Page[Entry], error)
}

// Service reads the audit log.
type Service struct{ store Store }

// NewService returns a service that uses the given store.
func NewService(store Store) *Service { return &Service{store: store} }

// List returns the entries of a workspace, newest first.
func (s *Service) List(ctx context.Context, workspaceID string, filter Filter, page paging.Request) (paging.Page[Entry], error) {
	entries, err := s.store.AuditEntries(ctx, workspaceID, filter, page)
	for i := range entries.Items {
		e := &entries.Items[i]
		for _, member := range []string{"name", "url", "email"} {
			if recorded, ok := e.Details[member].(string); ok && e.TargetName == "" {
				e.TargetName = recorded // it has no present name, or was deleted
			}
		}
	}
	return entries, err
}
