package connection

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
)

// integrations finds the integrations that a workspace can connect to.
type integrations struct {
	catalog *integration.Catalog // those that ship with Stepmill
	own     Own                  // nil: workspaces have none of their own
}

// Own finds the integrations that workspaces have described themselves.
type Own interface {
	// Find returns the integration of a workspace with the id; nil if there is none.
	Find(ctx context.Context, workspaceID, id string) (*integration.Integration, error)
}

// find returns the integration with an id, as a workspace sees it.
func (i *integrations) find(ctx context.Context, workspaceID, id string) (*integration.Integration, error) {
	if integration.IsOwn(id) && i.own != nil {
		found, err := i.own.Find(ctx, workspaceID, id)
		if err != nil || found != nil {
			return found, err
		}
	}
	if found, ok := i.catalog.Find(id); ok {
		return found, nil
	}
	return nil, fault.Field("/integration", "there is no integration %q%s", id, i.catalog.Hint(id))
}

// describe finds the integration of a connection and its way to authenticate.
func (i *integrations) describe(ctx context.Context, c Connection) (*integration.Integration, *integration.Auth, error) {
	if c.Integration == "" {
		service, err := integration.ParseCustom(c.Auth, c.Definition)
		if err != nil {
			return nil, nil, invalidDefinition(err)
		}
		return service, &service.Connection.Auth[0], nil
	}
	service, err := i.find(ctx, c.WorkspaceID, c.Integration)
	if err != nil {
		return nil, nil, err
	}
	way, ok := service.Connection.Find(c.Auth)
	if !ok {
		return nil, nil, fault.Field("/auth", "must be one of %s", strings.Join(service.Connection.IDs(), ", "))
	}
	return service, way, nil
}

// invalidDefinition reports the problems of a custom connection.
func invalidDefinition(err error) error {
	problems, ok := errors.AsType[integration.Errors](err)
	if !ok {
		return err
	}
	out := fault.New(fault.InvalidRequest, "the connection is not valid")
	for _, problem := range problems {
		pointer := problem.Pointer
		if pointer != "/auth" {
			pointer = "/definition" + pointer
		}
		out = out.With(fault.Detail{Pointer: pointer, Message: problem.Message})
	}
	return out
}

// forService replaces a service that uses the connections of another integration by that
// integration, such as Google Sheets by Google. If no services are chosen, it chooses that one.
func (i *integrations) forService(in New) New {
	service, ok := i.catalog.Find(in.Integration)
	if !ok || service.Of == "" {
		return in
	}
	in.Integration = service.Of
	if field, ok := service.ServicesField(); ok && strings.TrimSpace(in.Fields[field.Name]) == "" {
		fields := map[string]string{}
		maps.Copy(fields, in.Fields)
		fields[field.Name] = service.ID
		in.Fields = fields
	}
	return in
}

// The manifest of a workspace's own integration can change at any time, and whoever changes it
// need not be the person who entered the credential. So the sealed part of a connection records
// which use somebody has confirmed. As soon as the manifest describes another use, no credential
// is sent: not to a host, not to a token endpoint, and not for a test.

// changedProblem is why a connection cannot be used after its integration has changed.
const changedProblem = "its integration was changed, so that the credential would be used in another way: confirm the hosts and enter the credential again"

// isConfirmed reports whether somebody has confirmed the present use of the credential.
func (c *opened) isConfirmed() bool {
	return c.service == nil || c.service.Use() == c.secrets.Confirmed
}

// confirm records that whoever connects has confirmed the hosts of an own integration, if the
// given hosts are exactly those.
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

// reconfirm is confirm for a connection that is changed or reconnected. Hosts are only required
// if the use has changed since it was confirmed.
func (c *opened) reconfirm(hosts []string) error {
	if hosts == nil && c.isConfirmed() {
		return nil
	}
	return c.confirm(hosts)
}

// errUnconfirmed is returned in place of a request that would carry a credential.
func errUnconfirmed(c *opened) error {
	return fault.New(fault.ConnectionBroken, "the connection %q cannot be used: %s", c.Name, changedProblem)
}

// mustConfirm returns an error if the integration has changed since a consent was asked for.
func (c *opened) mustConfirm() error {
	if c.isConfirmed() {
		return nil
	}
	return fault.New(fault.ConsentExpired, "the integration %s was changed while you were at the service: connect again and confirm its hosts", c.service.Name)
}
