// Package secret owns the values that workflows refer to by name: secrets,
// which are sealed and never shown again, and variables, which are plain JSON.
// It does not own the workflows that refer to them (workflow), nor the use of a
// value in a run (engine).
package secret

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/vault"
)

// Metadata describes a secret or a variable without its value.
type Metadata struct {
	WorkspaceID string
	Name        string
	CreatedAt   time.Time
	CreatedBy   string
	UpdatedAt   time.Time
	UpdatedBy   string
}

// Meta returns the metadata of a secret or a variable.
func (m Metadata) Meta() Metadata { return m }

// Secret is a secret as callers see it. It has no field for the value, so no
// method that returns a Secret can reveal it.
type Secret struct{ Metadata }

// Variable is a variable with its value.
type Variable struct {
	Metadata
	Value json.RawMessage // compact
}

// Names lists the names that expressions of a workspace can refer to.
type Names struct {
	Secrets   []string
	Variables []string
}

// Store persists secrets and variables. Each method, also of a Table, is one
// transaction. Names are case-sensitive and unique per workspace and kind.
type Store interface {
	Secrets() Table[Secret]
	Variables() Table[Variable]
	// SealedSecrets returns the sealed values of the named secrets, without those
	// that do not exist.
	SealedSecrets(ctx context.Context, workspaceID string, names []string) (map[string][]byte, error)
	VariableValues(ctx context.Context, workspaceID string) (map[string]json.RawMessage, error)
	ValueNames(ctx context.Context, workspaceID string) (Names, error)
}

// Table persists the values of one kind and returns them as T.
type Table[T any] interface {
	// Put creates a value or replaces it. It changes nothing if that would exceed
	// the limit. Limit.Count applies to new names only.
	Put(ctx context.Context, w Write) (T, Outcome, error)
	// Get returns nil if there is no such name.
	Get(ctx context.Context, workspaceID, name string) (*T, error)
	// List is ordered by name.
	List(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[T], error)
	Delete(ctx context.Context, workspaceID, name string, entry audit.Entry) (deleted bool, err error)
}

// Write is a value to store under a name.
type Write struct {
	WorkspaceID string
	Name        string
	Value       []byte // sealed for a secret, JSON for a variable
	At          time.Time
	By          string
	Limit       Limit
	// Put writes one of these audit entries.
	Created, Updated audit.Entry
}

// Limit bounds the values of one kind in a workspace.
type Limit struct {
	Count int
	Bytes int // of all values together; secrets have no such limit
}

// Outcome is the result of a put.
type Outcome int

// The outcomes of a put.
const (
	Created Outcome = iota
	Updated
	TooMany  // Limit.Count is reached
	TooLarge // Limit.Bytes would be exceeded
)

// Vault seals and opens values.
type Vault interface {
	Seal(ctx context.Context, ref vault.Ref, plain []byte) ([]byte, error)
	Open(ctx context.Context, ref vault.Ref, sealed []byte) ([]byte, error)
}

// Service manages the secrets and variables of workspaces and reads their
// values for runs.
type Service struct {
	Secrets   *Values[Secret, string]
	Variables *Values[Variable, json.RawMessage]

	store Store
	vault Vault
}

// NewService returns a service that uses the given store and vault.
func NewService(store Store, vault Vault) *Service {
	s := &Service{store: store, vault: vault}
	s.Secrets = &Values[Secret, string]{
		kind: "secret", notFound: fault.SecretNotFound, table: store.Secrets(), encode: s.seal,
		limit: func(l auth.Limits) Limit { return Limit{Count: l.Secrets} },
	}
	s.Variables = &Values[Variable, json.RawMessage]{
		kind: "variable", notFound: fault.VariableNotFound, table: store.Variables(), encode: compact,
		limit: func(l auth.Limits) Limit { return Limit{Count: l.Variables, Bytes: l.VariableBytes} },
	}
	return s
}

// Open returns the values of the named secrets, without those that do not exist.
func (s *Service) Open(ctx context.Context, workspaceID string, names []string) (map[string]string, error) {
	values := make(map[string]string, len(names))
	if len(names) == 0 {
		return values, nil
	}
	found, err := s.store.SealedSecrets(ctx, workspaceID, names)
	if err != nil {
		return nil, err
	}
	for name, sealed := range found {
		value, err := s.vault.Open(ctx, sealedAt(workspaceID, name), sealed)
		if err != nil {
			return nil, fmt.Errorf("open the secret %s: %w", name, err)
		}
		values[name] = string(value)
	}
	return values, nil
}

// Vars returns every variable of a workspace as expressions see it.
func (s *Service) Vars(ctx context.Context, workspaceID string) (map[string]any, error) {
	found, err := s.store.VariableValues(ctx, workspaceID)
	if err != nil {
		return nil, err
	}
	values := make(map[string]any, len(found))
	for name, raw := range found {
		if values[name], err = expr.FromJSON(raw); err != nil {
			return nil, fmt.Errorf("read the variable %s: %w", name, err)
		}
	}
	return values, nil
}

// Names returns the names that expressions of a workspace can refer to.
func (s *Service) Names(ctx context.Context, workspaceID string) (Names, error) {
	return s.store.ValueNames(ctx, workspaceID)
}
