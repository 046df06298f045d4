package connection

import (
	"context"
	"maps"
	"slices"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
)

// Patch is a change of a connection. A nil member stays as it is.
type Patch struct {
	Definition []byte
	// Fields replaces those that it has; the others keep their value.
	Fields map[string]string
}

// Update changes the fields or the definition of a connection. Its status is untested
// afterwards, and its token, if it has one, is issued anew. Steps that wait because the
// connection was broken try it again. If a person consented to what is changed, somebody
// has to consent again. A patch without members changes nothing.
func (s *Service) Update(ctx context.Context, actor auth.Actor, id string, patch Patch) (Connection, error) {
	c, err := s.Get(ctx, actor, id)
	if err != nil {
		return Connection{}, err
	}
	if patch.Definition == nil && len(patch.Fields) == 0 {
		return c, nil
	}
	if patch.Definition != nil && c.Integration == "" {
		if patch.Definition, err = s.discover(ctx, c.WorkspaceID, c.Auth, patch.Definition); err != nil {
			return Connection{}, err
		}
	}
	for {
		c, err := s.Get(ctx, actor, id)
		if err != nil {
			return Connection{}, err
		}
		was, err := s.readSealed(ctx, c)
		if err != nil {
			return Connection{}, err
		}
		now, err := s.patch(was, patch)
		if err != nil {
			return Connection{}, err
		}
		now.Epoch, now.UpdatedAt, now.UpdatedBy = was.Epoch+1, clock.Now(), actor.Name()
		next, err := s.seal(ctx, now)
		if err != nil {
			return Connection{}, err
		}
		entry := s.entry(actor, "connection.updated", now.Connection)
		updated, err := s.store.UpdateConnection(ctx, next, was.Epoch, &entry)
		if err != nil {
			return Connection{}, err
		}
		if updated && was.Status == NeedsReconnect && now.Status != NeedsReconnect {
			err = s.wakeSteps(ctx, now.Connection)
		}
		if updated {
			return now.Connection, err
		}
	}
}

// readSealed reads a connection with its secrets, whatever its status.
func (s *Service) readSealed(ctx context.Context, c Connection) (*opened, error) {
	sealed, err := s.store.SealedConnection(ctx, c.WorkspaceID, c.Name)
	if err != nil {
		return nil, err
	}
	if sealed == nil || sealed.ID != c.ID {
		return nil, notFound(c.ID)
	}
	return s.unseal(ctx, *sealed)
}

// patch returns a connection with a change.
func (s *Service) patch(was *opened, patch Patch) (*opened, error) {
	now := *was
	if patch.Definition != nil {
		if now.Integration != "" {
			return nil, fault.Field("/definition", "must be left out: the integration %s has it", now.Integration)
		}
		now.Definition = patch.Definition
	}
	if err := s.configure(&now, patch.Fields); err != nil {
		return nil, err
	}
	now.Status, now.Problem = Untested, ""
	changed := changesUse(was, &now)
	if changed {
		if err := requireSecrets(was, &now, patch); err != nil {
			return nil, err
		}
	}
	switch {
	case !now.auth.NeedsConsent():
		now.secrets.Token, now.ExpiresAt = nil, nil
	case changed || was.secrets.Token == nil:
		now.secrets.Token, now.ExpiresAt = nil, nil
		now.Status, now.Problem = NeedsReconnect, "it was changed, so a person has to consent again"
	}
	now.keepReplaced(was, clock.Now())
	return &now, nil
}

// changesUse reports whether a change makes a difference to how, where or with which
// rights a stored secret is used. Whoever may change a connection must not learn its
// secrets, and every such difference can tell something about them: an expression in
// apply decides what the service answers, and a test returns the answer. Therefore
// everything counts but fewer hosts and fewer scopes.
func changesUse(was, now *opened) bool {
	return now.Integration == "" && !integration.SameUse(was.Definition, now.Definition) ||
		!maps.Equal(was.Fields, now.Fields) ||
		!isSubset(now.Hosts, was.Hosts) || !isSubset(now.auth.Scopes, was.auth.Scopes) ||
		len(now.auth.Scopes) == 0 && len(was.auth.Scopes) > 0 // the service would choose them
}

func isSubset[T comparable](part, whole []T) bool {
	return !slices.ContainsFunc(part, func(one T) bool { return !slices.Contains(whole, one) })
}

// requireSecrets rejects a change that does not contain the stored secrets again.
func requireSecrets(was, now *opened, patch Patch) error {
	var problems []fault.Detail
	for _, field := range now.service.Fields(now.auth) {
		if _, stored := was.secrets.Fields[field.Name]; stored && patch.Fields[field.Name] == "" {
			problems = append(problems, fault.Detail{Pointer: "/fields/" + field.Name, Message: "must be entered again, because it would be used in another way"})
		}
	}
	if len(problems) > 0 {
		return fault.New(fault.InvalidRequest, "the stored credential would be used in another way").With(problems...)
	}
	return nil
}
