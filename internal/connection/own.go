package connection

import (
	"context"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
)

// The manifest of a workspace's own integration can change at any time, and whoever changes
// it need not be the one who has entered the credential. So a connection keeps which use
// somebody has confirmed, in its sealed part. As soon as the manifest describes another
// use, no credential is sent: not to a host, not to a token endpoint, and not for a test.

// Own finds the integrations that workspaces have described themselves.
type Own interface {
	// Find returns the integration of a workspace with the id; nil if there is none.
	Find(ctx context.Context, workspaceID, id string) (*integration.Integration, error)
}

// UseOwn lets workspaces connect to integrations of their own.
func (s *Service) UseOwn(own Own) { s.own = own }

// changedProblem is why a connection cannot be used after its integration has changed.
const changedProblem = "its integration was changed, so that the credential would be used in another way: confirm the hosts and enter the credential again"

// integration returns the integration with an id, as a workspace sees it.
func (s *Service) integration(ctx context.Context, workspaceID, id string) (*integration.Integration, error) {
	if integration.IsOwn(id) && s.own != nil {
		found, err := s.own.Find(ctx, workspaceID, id)
		if err != nil || found != nil {
			return found, err
		}
	}
	if found, ok := s.integrations.Find(id); ok {
		return found, nil
	}
	return nil, fault.Field("/integration", "there is no integration %q%s", id, s.integrations.Hint(id))
}

// isConfirmed reports whether somebody has confirmed how the credential is used now.
func (c *opened) isConfirmed() bool {
	return c.service == nil || c.service.Use() == c.secrets.Confirmed
}

// confirm records that whoever connects knows the hosts of an own integration.
func (c *opened) confirm(hosts []string) error {
	if c.service.Use() == "" {
		if hosts != nil {
			return fault.Field("/hosts", "must be left out: only the hosts of the workspace's own integrations are confirmed")
		}
		return nil
	}
	want := c.service.ConfirmHosts()
	if hosts == nil {
		return fault.Field("/hosts", "is required: %s is an integration of this workspace, and its manifest says that the credential may be sent to %s. Confirm that by giving these hosts", c.service.Name, strings.Join(want, ", "))
	}
	given := slices.Compact(slices.Sorted(slices.Values(hosts)))
	if !slices.Equal(given, want) {
		return fault.Field("/hosts", "must be exactly the hosts that the credential may be sent to: %s", strings.Join(want, ", "))
	}
	c.secrets.Confirmed = c.service.Use()
	return nil
}

// reconfirm confirms the hosts of a connection that is changed or reconnected. Without
// hosts, what was confirmed before must still hold.
func (c *opened) reconfirm(hosts []string) error {
	if hosts == nil && c.isConfirmed() {
		return nil
	}
	return c.confirm(hosts)
}

// refuseUnconfirmed returns a BrokenError for a connection whose integration was changed,
// and records why it cannot be used.
func (s *Service) refuseUnconfirmed(ctx context.Context, c *opened) error {
	if c.isConfirmed() {
		return nil
	}
	if c.Status == NeedsReconnect {
		return &BrokenError{Name: c.Name, Problem: c.Problem}
	}
	return s.markBroken(ctx, c, changedProblem)
}

// errUnconfirmed is returned in place of a request that would carry a credential.
func errUnconfirmed(c *opened) error {
	return fault.New(fault.ConnectionBroken, "the connection %q cannot be used: %s", c.Name, changedProblem)
}

// mustConfirm is the error of a consent whose integration was changed meanwhile.
func (c *opened) mustConfirm() error {
	if c.isConfirmed() {
		return nil
	}
	return fault.New(fault.ConsentExpired, "the integration %s was changed while you were at the service: connect again and confirm its hosts", c.service.Name)
}
