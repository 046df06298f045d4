// Package secret owns what workflows can refer to by name: secrets, which are
// sealed and never shown again, and variables, which are plain. It does not own
// who refers to them (workflow), nor what becomes of a value in a run (engine).
package secret

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/vault"
)

// Secret is a secret as it is shown: without its value.
type Secret struct {
	WorkspaceID string
	Name        string
	CreatedAt   time.Time
	CreatedBy   string
	UpdatedAt   time.Time
	UpdatedBy   string
}

// Variable is a value in the open.
type Variable struct {
	WorkspaceID string
	Name        string
	Value       json.RawMessage // compact
	CreatedAt   time.Time
	CreatedBy   string
	UpdatedAt   time.Time
	UpdatedBy   string
}

// Names is what expressions of a workspace can refer to.
type Names struct {
	Secrets   []string
	Variables []string
}

// Store keeps secrets and variables. A method is one atomic unit; a pointer
// result is nil when there is no such row. Names are unique in a workspace and
// their case counts.
type Store interface {
	// PutSecret makes a secret or replaces its value, unless the workspace holds
	// atMost already. It answers with the row as it is then.
	PutSecret(ctx context.Context, s Secret, sealed []byte, atMost int, deed Deed) (Secret, Outcome, error)
	Secret(ctx context.Context, workspaceID, name string) (*Secret, error)
	// Secrets lists in the order of the names, as Variables does.
	Secrets(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[Secret], error)
	DeleteSecret(ctx context.Context, workspaceID, name string, entry audit.Entry) (deleted bool, err error)
	// SealedSecrets returns those of the names that exist.
	SealedSecrets(ctx context.Context, workspaceID string, names []string) (map[string][]byte, error)

	// PutVariable is like PutSecret; the values of a workspace have at most so
	// many bytes together.
	PutVariable(ctx context.Context, v Variable, atMost, bytesAtMost int, deed Deed) (Variable, Outcome, error)
	Variable(ctx context.Context, workspaceID, name string) (*Variable, error)
	Variables(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[Variable], error)
	DeleteVariable(ctx context.Context, workspaceID, name string, entry audit.Entry) (deleted bool, err error)
	VariableValues(ctx context.Context, workspaceID string) (map[string]json.RawMessage, error)

	SecretNames(ctx context.Context, workspaceID string) (Names, error)
}

// Deed has the audit entries of a put, of which one is written.
type Deed struct{ Created, Updated audit.Entry }

// Outcome is how a put ended.
type Outcome int

// The outcomes of a put.
const (
	Created Outcome = iota
	Updated
	TooMany
	TooLarge
)

// Vault seals and opens.
type Vault interface {
	Seal(ctx context.Context, ref vault.Ref, plain []byte) ([]byte, error)
	Open(ctx context.Context, ref vault.Ref, sealed []byte) ([]byte, error)
}

// Service has the use cases of secrets and variables.
type Service struct {
	store Store
	vault Vault
}

// NewService makes a service on a store.
func NewService(store Store, vault Vault) *Service { return &Service{store: store, vault: vault} }

// MaxValue is the number of bytes that a value may have.
const MaxValue = 64 << 10

var namePattern = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,62}$`)

// checkName refuses a name that could not stand after secrets. or vars. in an
// expression.
func checkName(name string) error {
	if !namePattern.MatchString(name) {
		return fault.New(fault.InvalidRequest,
			"the name must start with a letter or _ and have at most 63 characters a-z, A-Z, 0-9 and _")
	}
	return nil
}

func checkSecret(value string) error {
	switch {
	case len(value) > MaxValue:
		return fault.Field("/value", "must have at most %d bytes", MaxValue)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return fault.Field("/value", "must be UTF-8 text without NUL; write other bytes in base64")
	case utf8.RuneCountInString(value) < mask.Shortest:
		return fault.Field("/value", "must have at least %d characters: a shorter value cannot be kept out of what runs record", mask.Shortest)
	}
	return nil
}

// PutSecret makes a secret or replaces its value.
func (s *Service) PutSecret(ctx context.Context, actor auth.Actor, name, value string) (made Secret, created bool, err error) {
	if err := checkName(name); err != nil {
		return Secret{}, false, err
	}
	if err := checkSecret(value); err != nil {
		return Secret{}, false, err
	}
	sealed, err := s.vault.Seal(ctx, sealedAt(actor.Workspace.ID, name), []byte(value))
	if err != nil {
		return Secret{}, false, err
	}
	now, limit := clock.Now(), actor.Limits().Secrets
	made = Secret{
		WorkspaceID: actor.Workspace.ID, Name: name,
		CreatedAt: now, CreatedBy: actor.Name(), UpdatedAt: now, UpdatedBy: actor.Name(),
	}
	made, outcome, err := s.store.PutSecret(ctx, made, sealed, limit, deed(actor, "secret", name))
	if err == nil && outcome == TooMany {
		err = fault.New(fault.PlanLimitExceeded, "the %s plan allows %d secrets; delete one first", actor.Workspace.Plan, limit)
	}
	return made, outcome == Created, err
}

// GetSecret reads one secret, without its value.
func (s *Service) GetSecret(ctx context.Context, actor auth.Actor, name string) (Secret, error) {
	if !namePattern.MatchString(name) {
		return Secret{}, noSecret(name)
	}
	found, err := s.store.Secret(ctx, actor.Workspace.ID, name)
	return fault.Found(found, err, noSecret, name)
}

// ListSecrets lists the secrets of a workspace by name, without their values.
func (s *Service) ListSecrets(ctx context.Context, actor auth.Actor, page paging.Request) (paging.Page[Secret], error) {
	return s.store.Secrets(ctx, actor.Workspace.ID, page)
}

// DeleteSecret removes a secret; a step that refers to it fails from now on.
func (s *Service) DeleteSecret(ctx context.Context, actor auth.Actor, name string) error {
	if !namePattern.MatchString(name) {
		return noSecret(name)
	}
	deleted, err := s.store.DeleteSecret(ctx, actor.Workspace.ID, name, actor.Did("secret.deleted", "secret", name, nil))
	if err == nil && !deleted {
		err = noSecret(name)
	}
	return err
}

// Open returns the values of those of the named secrets that exist.
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

// Names returns what expressions of a workspace can refer to.
func (s *Service) Names(ctx context.Context, workspaceID string) (Names, error) {
	return s.store.SecretNames(ctx, workspaceID)
}

// sealedAt is where the value of a secret is sealed.
func sealedAt(workspaceID, name string) vault.Ref {
	return vault.Ref{Workspace: workspaceID, Table: "secrets", ID: name}
}

func deed(actor auth.Actor, kind, name string) Deed {
	return Deed{Created: actor.Did(kind+".created", kind, name, nil), Updated: actor.Did(kind+".updated", kind, name, nil)}
}

func noSecret(name string) error {
	return fault.New(fault.SecretNotFound, "there is no secret %q", name)
}
