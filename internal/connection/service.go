package connection

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"regexp"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/uid"
)

// Service creates, lists, changes and deletes connections.
type Service struct {
	repo    *repository
	servers *authServers
	log     *slog.Logger
}

// In returns the service as part of a transaction. Integrations of the workspace are still read
// outside of it.
func (s *Service) In(tx txn.Tx) *Service {
	bound := *s
	bound.repo = s.repo.in(tx)
	return &bound
}

// New is the input for creating a connection.
type New struct {
	Name        string
	Integration string
	Definition  json.RawMessage
	Auth        string
	Fields      map[string]string
	Access      *Access
	Members     []string
	// Hosts confirms where the credential of an own integration may be sent.
	Hosts []string
}

// PrepareCreate prepares a new connection that needs no consent. Create stores it.
func (s *Service) PrepareCreate(ctx context.Context, actor auth.Actor, in New) (Sealed, error) {
	if err := checkName(in.Name); err != nil {
		return Sealed{}, err
	}
	c, err := s.draft(ctx, actor, in)
	if err != nil {
		return Sealed{}, err
	}
	if c.auth.NeedsConsent() {
		return Sealed{}, fault.Field("/auth", "%s needs the consent of a person: connect it in the dashboard", c.service.Name)
	}
	return s.repo.seal(ctx, c)
}

// draft returns a new connection, which is not stored.
func (s *Service) draft(ctx context.Context, actor auth.Actor, in New) (*opened, error) {
	in = s.repo.integrations.forService(in)
	now := clock.Now()
	c := &opened{Connection: Connection{
		ID: uid.New(uid.Connection), WorkspaceID: actor.Workspace.ID, Name: in.Name, Integration: in.Integration, Definition: in.Definition,
		Auth: in.Auth, Access: Everyone, Status: Untested, Epoch: 1, CreatedAt: now, CreatedBy: actor.Name(), UpdatedAt: now, UpdatedBy: actor.Name(),
	}}
	if err := s.setAccess(ctx, &c.Connection, in.Access, in.Members); err != nil {
		return nil, err
	}
	return c, s.repo.integrations.configure(ctx, c, in)
}

// Create stores a connection that PrepareCreate returned.
func (s *Service) Create(ctx context.Context, actor auth.Actor, c Sealed) (Connection, error) {
	return c.Connection, s.insert(ctx, actor, c)
}

func (s *Service) insert(ctx context.Context, actor auth.Actor, c Sealed) error {
	c.Access = cmp.Or(c.Access, Everyone) // a consent of an earlier version has none
	limit := actor.Limits().Connections
	outcome, err := s.repo.store.InsertConnection(ctx, c, limit, auditEntry(actor, "connection.created", c.Connection))
	switch {
	case err != nil:
	case outcome == NameTaken:
		err = nameTaken(c.Name)
	case outcome == NoIntegration:
		err = fault.New(fault.IntegrationNotFound, "the integration %q was deleted", c.Integration)
	case outcome == TooMany:
		err = fault.New(fault.PlanLimitExceeded, "the %s plan allows %d connections; delete one first", actor.Workspace.Plan, limit)
	}
	return err
}

func nameTaken(name string) error {
	return fault.New(fault.ConnectionExists, "there is already a connection %q, or one that had this name before", name)
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

func checkName(name string) error {
	if !namePattern.MatchString(name) {
		return fault.Field("/name", "must start with a letter a-z and contain only a-z, 0-9, _ and -, at most 63 characters")
	}
	return nil
}

// Get returns a connection.
func (s *Service) Get(ctx context.Context, actor auth.Actor, id string) (Connection, error) {
	if !uid.Valid(uid.Connection, id) {
		return Connection{}, notFound(id)
	}
	c, err := s.repo.store.Connection(ctx, actor.Workspace.ID, id)
	return fault.Found(c, err, notFound, id)
}

// List lists the connections of a workspace by name.
func (s *Service) List(ctx context.Context, actor auth.Actor, page paging.Request) (paging.Page[Connection], error) {
	return s.repo.store.Connections(ctx, actor.Workspace.ID, page)
}

// Usage returns what uses connections, by name.
func (s *Service) Usage(ctx context.Context, actor auth.Actor, names []string) (map[string]Usage, error) {
	return s.repo.store.ConnectionUsage(ctx, actor.Workspace.ID, names)
}

// Places returns where each workflow in the usage uses a connection, in the same order.
func (s *Service) Places(ctx context.Context, actor auth.Actor, name string, usage Usage) ([]Places, error) {
	all := make([]Places, len(usage.Workflows))
	for i, user := range usage.Workflows {
		var err error
		if all[i], err = s.repo.store.ConnectionPlaces(ctx, actor.Workspace.ID, user.ID, append([]string{name}, usage.Aliases...)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Delete deletes a connection that no active workflow uses. Then it revokes its token at the
// service, if the service allows that.
func (s *Service) Delete(ctx context.Context, actor auth.Actor, id string) error {
	c, err := s.changeable(ctx, actor, id)
	if err != nil {
		return err
	}
	deleted, users, err := s.repo.store.DeleteConnection(ctx, actor.Workspace.ID, id, auditEntry(actor, "connection.deleted", c))
	switch {
	case err != nil:
		return err
	case deleted != nil:
		s.revokeDeleted(ctx, *deleted)
		return nil
	case len(users) > 0:
		return fault.New(fault.ConnectionInUse, "the connection %q is used by the active workflow %q: pause it or change it first", c.Name, users[0].Name)
	}
	return notFound(id)
}

// revokeDeleted revokes the token of a connection that was deleted.
//
// Reconnecting does not revoke the previous token: many services have one grant per person and
// app, and would revoke the new token too.
func (s *Service) revokeDeleted(ctx context.Context, deleted Sealed) {
	c, err := s.repo.unseal(ctx, deleted)
	if err != nil {
		s.log.Warn("a connection was deleted without revoking its token", "connection_id", deleted.ID, "error", err)
		return
	}
	s.servers.revoke(ctx, c)
}

func auditEntry(actor auth.Actor, what string, c Connection) audit.Entry {
	return actor.AuditEntry(what, "connection", c.ID, map[string]any{"name": c.Name})
}

func notFound(id string) error {
	return fault.New(fault.ConnectionNotFound, "there is no connection %q", id)
}
