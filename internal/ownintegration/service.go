package ownintegration

import (
	"cmp"
	"context"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/fairqueue"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/lru"
	"github.com/stepmill/stepmill/internal/txn"
)

// cachedBytes is how long the texts of the manifests are together whose compiled form is kept.
// Compiled, they need about ten times as much memory.
const cachedBytes = 8 << 20

// Service implements the operations on own integrations.
type Service struct {
	store Store
	// compiled has the integrations that were used last. A text compiles to the same
	// integration for ever, so none is out of date.
	compiled    *lru.Cache[cacheKey, *integration.Integration]
	conversions *fairqueue.Queue
}

type cacheKey struct{ workspaceID, id, digest string }

// NewService returns a service on a store.
func NewService(store Store) *Service {
	return &Service{store: store, compiled: lru.New[cacheKey, *integration.Integration](cachedBytes), conversions: fairqueue.New(conversions, conversions, conversionsWaiting)}
}

// Own is an own integration with its manifest.
type Own struct {
	Manifest
	Integration *integration.Integration
}

// Parse reads a manifest that somebody has written, which changes nothing yet.
func (s *Service) Parse(actor auth.Actor, text string) (Own, error) {
	one, err := integration.ParseOwn([]byte(text))
	if err != nil {
		return Own{}, invalid(integration.AsErrors(err))
	}
	return Own{Integration: one, Manifest: Manifest{
		WorkspaceID: actor.Workspace.ID, ID: one.ID, Text: text, Digest: one.Digest(), UpdatedAt: clock.Now(), UpdatedBy: actor.Name(),
	}}, nil
}

// In returns the service as a part of a transaction.
func (s *Service) In(tx txn.Tx) *Service {
	bound := *s
	bound.store = s.store.In(tx)
	return &bound
}

// Create adds an integration.
func (s *Service) Create(ctx context.Context, actor auth.Actor, own Own) (Own, error) {
	own.CreatedAt, own.CreatedBy = own.UpdatedAt, own.UpdatedBy
	outcome, err := s.store.InsertManifest(ctx, own.Manifest, s.entry(actor, "integration.created", own.ID))
	if err == nil {
		err = rejection(outcome, own.ID)
	}
	return own, err
}

// Replace replaces the manifest of an integration, if its ETag is accepted. Connections that
// would be used in another way have to be reconnected.
func (s *Service) Replace(ctx context.Context, actor auth.Actor, id string, own Own, match etag.Match) (Own, error) {
	if own.ID != id {
		return Own{}, invalid(integration.Errors{{Pointer: "/id", Message: "is " + own.ID + ", but the integration to replace is " + id + ": an id cannot change"}})
	}
	for {
		was, err := s.manifest(ctx, actor.Workspace.ID, id)
		if err != nil {
			return Own{}, err
		}
		if err := was.check(match); err != nil {
			return Own{}, err
		}
		own.CreatedAt, own.CreatedBy = was.CreatedAt, was.CreatedBy
		problem := ""
		if before, err := s.compile(was); err != nil || before.Use() != own.Integration.Use() {
			problem = ChangedProblem
		}
		outcome, err := s.store.ReplaceManifest(ctx, own.Manifest, was.Digest, problem, s.entry(actor, "integration.updated", id))
		if err != nil || outcome != Stale {
			return own, cmp.Or(err, rejection(outcome, id))
		}
	}
}

// ChangedProblem is why a connection has to be reconnected after its integration has changed.
const ChangedProblem = "its integration was changed, so that the credential would be used in another way: somebody has to confirm the hosts and enter the credential again"

// Delete deletes an integration that has no connections, if its ETag is accepted.
func (s *Service) Delete(ctx context.Context, actor auth.Actor, id string, match etag.Match) error {
	for {
		was, err := s.manifest(ctx, actor.Workspace.ID, id)
		if err != nil {
			return err
		}
		if err := was.check(match); err != nil {
			return err
		}
		outcome, connection, err := s.store.DeleteManifest(ctx, was, s.entry(actor, "integration.deleted", id))
		switch {
		case err != nil:
			return err
		case outcome == InUse:
			return fault.New(fault.IntegrationInUse, "the connection %q belongs to the integration %q: delete it first, as steps and triggers of the integration need one", connection, id)
		case outcome != Stale:
			return rejection(outcome, id)
		}
	}
}

// Manifest reads the manifest of an integration.
func (s *Service) Manifest(ctx context.Context, actor auth.Actor, id string) (Manifest, error) {
	return s.manifest(ctx, actor.Workspace.ID, id)
}

func (s *Service) manifest(ctx context.Context, workspaceID, id string) (Manifest, error) {
	if !integration.IsOwn(id) {
		if _, err := s.Lookup(ctx, workspaceID, id); err != nil {
			return Manifest{}, err
		}
		return Manifest{}, fault.New(fault.IntegrationNotFound, "the integration %q is part of Stepmill and not one of this workspace: it cannot be changed, and has no manifest here", id)
	}
	m, err := s.store.Manifest(ctx, workspaceID, id)
	return fault.Found(m, err, notFound, id)
}

// Find returns the integration of a workspace with the id, or nil if there is none. It
// reads what the manifest is now, also if another node has changed it.
func (s *Service) Find(ctx context.Context, workspaceID, id string) (*integration.Integration, error) {
	head, err := s.store.ManifestHead(ctx, workspaceID, id)
	if err != nil || head == nil {
		return nil, err
	}
	return s.find(ctx, workspaceID, *head)
}

// Digests returns what identifies the texts of integrations of a workspace, in the order of
// their ids; "" for one that does not exist.
func (s *Service) Digests(ctx context.Context, workspaceID string, ids []string) ([]string, error) {
	out := make([]string, len(ids))
	for i, id := range ids {
		head, err := s.store.ManifestHead(ctx, workspaceID, id)
		if err != nil {
			return nil, err
		}
		if head != nil {
			out[i] = head.Digest
		}
	}
	return out, nil
}

// List returns the integrations of a workspace, ordered by id, without those that are not
// valid in this version of Stepmill.
func (s *Service) List(ctx context.Context, workspaceID string) ([]*integration.Integration, error) {
	heads, err := s.store.ManifestHeads(ctx, workspaceID)
	if err != nil {
		return nil, err
	}
	var out []*integration.Integration
	for _, head := range heads {
		one, err := s.find(ctx, workspaceID, head)
		if err != nil && !fault.Is(err, fault.IntegrationInvalid) {
			return nil, err
		}
		if one != nil {
			out = append(out, one)
		}
	}
	return out, nil
}

// Catalog returns the integrations that a workspace can use: those that are part of the
// product, and its own.
func (s *Service) Catalog(ctx context.Context, workspaceID string) (*integration.Catalog, error) {
	builtin, err := integration.Builtin()
	if err != nil {
		return nil, err
	}
	own, err := s.List(ctx, workspaceID)
	if err != nil || own == nil {
		return builtin, err
	}
	return builtin.With(own...), nil
}

// Lookup returns the integration with an id that a workspace can use.
func (s *Service) Lookup(ctx context.Context, workspaceID, id string) (*integration.Integration, error) {
	if integration.IsOwn(id) {
		if one, err := s.Find(ctx, workspaceID, id); err != nil || one != nil {
			return one, err
		}
	}
	builtin, err := integration.Builtin()
	if err != nil {
		return nil, err
	}
	return builtin.Get(id)
}

// find returns the integration with a text, or one with a later text. It is nil if it was
// deleted meanwhile.
func (s *Service) find(ctx context.Context, workspaceID string, head Head) (*integration.Integration, error) {
	if one, ok := s.compiled.Get(cacheKey{workspaceID, head.ID, head.Digest}); ok {
		return one, nil
	}
	m, err := s.store.Manifest(ctx, workspaceID, head.ID)
	if err != nil || m == nil {
		return nil, err
	}
	return s.compile(*m)
}

func (s *Service) compile(m Manifest) (*integration.Integration, error) {
	key := cacheKey{m.WorkspaceID, m.ID, m.Digest}
	if one, ok := s.compiled.Get(key); ok {
		return one, nil
	}
	one, err := integration.ParseOwn([]byte(m.Text))
	if err != nil {
		return nil, outdated(m.ID, integration.AsErrors(err))
	}
	return s.compiled.Add(key, one, len(m.Text)), nil
}

// check returns version_conflict unless the ETag of the manifest is accepted.
func (m Manifest) check(match etag.Match) error {
	if match.Accepts(m.ETag()) {
		return nil
	}
	return fault.New(fault.VersionConflict, "the integration %q has changed since it was read: its ETag is now %s; read it again and repeat the change", m.ID, m.ETag())
}
