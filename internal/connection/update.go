package connection

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
)

// Patch is a change of a connection. A nil member stays as it is.
type Patch struct {
	Name *string
	// Access and Members say who may use the connection.
	Access     *Access
	Members    []string
	Definition []byte
	// Fields replaces those that it has; the others keep their value.
	Fields map[string]string
	// Hosts confirms where the credential of an own integration may be sent.
	Hosts []string
}

// changesCredential reports whether the patch changes more than the name and who may use
// the connection.
func (p Patch) changesCredential() bool {
	return p.Definition != nil || len(p.Fields) > 0 || p.Hosts != nil
}

func (p Patch) isEmpty() bool {
	return !p.changesCredential() && p.Name == nil && p.Access == nil && p.Members == nil
}

// Update changes a connection. If its fields or its definition change, its status becomes
// untested, and a new token is requested if it uses one. Steps that wait because the connection
// was broken try it again. If the change concerns what a person has consented to, somebody has
// to consent again. A patch without members changes nothing.
func (s *Service) Update(ctx context.Context, actor auth.Actor, id string, patch Patch) (Connection, error) {
	c, err := s.changeable(ctx, actor, id)
	if err != nil || patch.isEmpty() {
		return c, err
	}
	if patch.Definition != nil && c.Integration == "" {
		if patch.Definition, err = s.discover(ctx, c.WorkspaceID, c.Auth, patch.Definition); err != nil {
			return Connection{}, err
		}
	}
	for {
		was, err := s.openChangeable(ctx, actor, id)
		if err != nil {
			return Connection{}, err
		}
		now, err := s.change(ctx, actor, was, patch)
		if !errors.Is(err, errStale) {
			return now, err
		}
	}
}

// errStale is the error of changing a connection that has changed since it was read.
var errStale = errors.New("the connection has changed")

// change applies a patch to a connection and stores the result.
func (s *Service) change(ctx context.Context, actor auth.Actor, was *opened, patch Patch) (Connection, error) {
	now, err := s.patch(ctx, was, patch)
	if err != nil {
		return Connection{}, err
	}
	if err := s.setAccess(ctx, &now.Connection, patch.Access, patch.Members); err != nil {
		return Connection{}, err
	}
	now.UpdatedAt, now.UpdatedBy = clock.Now(), actor.Name()
	next, err := s.repo.seal(ctx, now)
	if err != nil {
		return Connection{}, err
	}
	next.KeepClaim = now.secrets.Token != nil
	outcome, err := s.repo.store.ChangeConnection(ctx, next, was.Connection, changeEntry(actor, was.Connection, now.Connection))
	switch {
	case err != nil:
		return Connection{}, err
	case outcome == Stale:
		return Connection{}, errStale
	case outcome == NameTaken:
		return Connection{}, nameTaken(now.Name)
	case outcome == TooMany:
		return Connection{}, fault.Field("/name", "cannot change again: a connection can have %d earlier names, which all still lead to it", MaxAliases)
	case was.Status == NeedsReconnect && now.Status != NeedsReconnect:
		err = s.repo.wakeSteps(ctx, now.Connection)
	}
	return now.Connection, err
}

func changeEntry(actor auth.Actor, was, now Connection) audit.Entry {
	details := map[string]any{"name": now.Name}
	if was.Name != now.Name {
		details["was"] = was.Name
	}
	if was.Access != now.Access || !slices.Equal(was.Members, now.Members) {
		details["access"] = now.Access
	}
	return actor.AuditEntry("connection.updated", "connection", now.ID, details)
}

// patch returns the connection that results from a patch.
func (s *Service) patch(ctx context.Context, was *opened, patch Patch) (*opened, error) {
	now := *was
	if patch.Name != nil {
		if err := checkName(*patch.Name); err != nil {
			return nil, err
		}
		now.Name = *patch.Name
	}
	if !patch.changesCredential() {
		return &now, nil
	}
	now.Epoch++
	if patch.Definition != nil {
		if now.Integration != "" {
			return nil, fault.Field("/definition", "must be left out: the integration %s has it", now.Integration)
		}
		now.Definition = patch.Definition
	}
	if err := s.repo.integrations.setFields(ctx, &now, patch.Fields); err != nil {
		return nil, err
	}
	if err := now.reconfirm(patch.Hosts); err != nil {
		return nil, err
	}
	changed := changesUse(was, &now)
	if changed {
		if err := requireSecrets(was, &now, patch); err != nil {
			return nil, err
		}
	}
	now.Status, now.Problem = Untested, ""
	switch {
	case !now.auth.NeedsConsent():
		now.setToken(nil)
	case changed || was.secrets.Token == nil:
		now.setToken(nil)
		now.Status, now.Problem = NeedsReconnect, "it was changed, so a person has to consent again"
	}
	if err := checkApplied(&now); err != nil { // only after requireSecrets, and once the old token is gone
		return nil, err
	}
	now.keepReplaced(was, clock.Now())
	return &now, nil
}

// changesUse reports whether a change affects how, where or with which rights a stored secret is
// used. Whoever may change a connection must not learn its secrets, and every such change can
// reveal something about them: an expression in apply influences the response of the service,
// and a test shows that. Therefore everything counts except fewer hosts and fewer scopes.
func changesUse(was, now *opened) bool {
	return now.Integration == "" && !integration.SameUse(was.Definition, now.Definition) ||
		was.secrets.Confirmed != now.secrets.Confirmed ||
		!maps.Equal(was.Fields, now.Fields) ||
		!isSubset(now.Hosts, was.Hosts) || !isSubset(now.scopes(), was.scopes()) ||
		len(now.scopes()) == 0 && len(was.scopes()) > 0 // without any, the service chooses them
}

func isSubset[T comparable](part, whole []T) bool {
	return !slices.ContainsFunc(part, func(one T) bool { return !slices.Contains(whole, one) })
}

// requireSecrets rejects a patch that does not contain the stored secrets again.
func requireSecrets(was, now *opened, patch Patch) error {
	var problems []fault.Detail
	for _, field := range now.service.Fields(now.auth) {
		_, stored := was.secrets.Fields[field.Name]
		_, stays := now.secrets.Fields[field.Name]
		if stored && stays && patch.Fields[field.Name] == "" {
			problems = append(problems, fault.Detail{Pointer: "/fields/" + field.Name, Message: "must be entered again, because it would be used in another way"})
		}
	}
	if len(problems) > 0 {
		return fault.New(fault.InvalidRequest, "the stored credential would be used in another way").With(problems...)
	}
	return nil
}
