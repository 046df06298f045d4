package connection

import (
	"context"
	"net/url"
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
// connection was broken try it again.
func (s *Service) Update(ctx context.Context, actor auth.Actor, id string, patch Patch) (Connection, error) {
	c, err := s.Get(ctx, actor, id)
	if err != nil {
		return Connection{}, err
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
		now.Epoch, now.Status, now.Problem, now.UpdatedAt, now.UpdatedBy = was.Epoch+1, Untested, "", clock.Now(), actor.Name()
		next, err := s.seal(ctx, now)
		if err != nil {
			return Connection{}, err
		}
		entry := s.entry(actor, "connection.updated", now.Connection)
		updated, err := s.store.UpdateConnection(ctx, next, was.Epoch, &entry)
		if err != nil {
			return Connection{}, err
		}
		if updated && was.Status == NeedsReconnect {
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
	if err := checkMove(was, &now, patch); err != nil {
		return nil, err
	}
	if !now.auth.NeedsConsent() {
		now.secrets.Token, now.ExpiresAt = nil, nil
	}
	return &now, nil
}

// checkMove rejects a change that would send what is stored to a host that has not
// received it before: whoever may change a connection must not learn its secrets.
// Secrets that are entered again may go anywhere.
func checkMove(was, now *opened, patch Patch) error {
	before := destinations(was)
	if !slices.ContainsFunc(destinations(now), func(host Host) bool { return !slices.Contains(before, host) }) {
		return nil
	}
	if was.auth.NeedsConsent() || now.auth.NeedsConsent() {
		return fault.New(fault.InvalidRequest, "this would send the credential to another host: delete the connection and connect again")
	}
	var problems []fault.Detail
	for _, field := range now.service.Fields(now.auth) {
		if _, stored := was.secrets.Fields[field.Name]; stored && patch.Fields[field.Name] == "" {
			problems = append(problems, fault.Detail{Pointer: "/fields/" + field.Name, Message: "must be entered again, because it would be sent to another host"})
		}
	}
	if len(problems) > 0 {
		return fault.New(fault.InvalidRequest, "the credential would be sent to another host").With(problems...)
	}
	return nil
}

// destinations lists the hosts that receive a part of the credential.
func destinations(c *opened) []Host {
	hosts, env := slices.Clone(c.Hosts), c.env()
	templates := []integration.Template{c.auth.TokenURL, c.auth.RevokeURL}
	if c.auth.Exchange != nil {
		templates = append(templates, c.auth.Exchange.URL)
	}
	for _, template := range templates {
		if template.IsZero() {
			continue
		}
		u, err := template.URL(env)
		if err != nil {
			u = &url.URL{} // the host of an unreadable URL is unknown
		}
		host, err := hostOf(u)
		if err != nil {
			host = Host(u.String())
		}
		hosts = append(hosts, host)
	}
	return hosts
}
