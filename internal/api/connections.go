package api

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/txn"
)

type connections struct {
	connections *connection.Service
	tester      *connection.Tester
	lists       *operation.Lists
	cursors     *paging.Codec
}

type connectionBody struct {
	ID            string            `json:"id"`
	Name          string            `json:"name"`
	Aliases       []string          `json:"aliases"`
	Integration   *string           `json:"integration"`
	Auth          string            `json:"auth"`
	Status        connection.Status `json:"status"`
	Problem       *string           `json:"problem"`
	Account       *string           `json:"account"`
	Fields        map[string]string `json:"fields"`
	Hosts         []connection.Host `json:"hosts"`
	Access        connection.Access `json:"access"`
	Members       []string          `json:"members"`
	Definition    json.RawMessage   `json:"definition"`
	LastUsedAt    *string           `json:"last_used_at"`
	ConsentEndsAt *string           `json:"consent_ends_at"`
	ExpiresAt     *string           `json:"expires_at"`
	// CertificateExpiresAt is about the client certificate, ExpiresAt about the token.
	CertificateExpiresAt *string          `json:"certificate_expires_at"`
	CreatedAt            string           `json:"created_at"`
	CreatedBy            *string          `json:"created_by"`
	UpdatedAt            string           `json:"updated_at"`
	UpdatedBy            *string          `json:"updated_by"`
	UsedBy               []connectionUser `json:"used_by"`
	WaitingRuns          int              `json:"waiting_runs"`
}

type connectionUser struct {
	WorkflowID string `json:"workflow_id"`
	Name       string `json:"name"`
	Active     bool   `json:"active"`
	// Steps and Triggers are nil in lists.
	Steps    []string `json:"steps"`
	Triggers []string `json:"triggers"`
}

func showConnection(c connection.Connection, usage connection.Usage) connectionBody {
	return connectionBody{
		ID: c.ID, Name: c.Name, Aliases: orEmpty(usage.Aliases), Access: c.Access, Members: orEmpty(c.Members), Integration: orNull(c.Integration), Auth: c.Auth, Status: c.Status, Problem: orNull(c.Problem), Account: orNull(c.Account),
		Fields: c.Fields, Hosts: c.Hosts, Definition: c.Definition, LastUsedAt: clock.FormatPtr(c.LastUsedAt), ExpiresAt: clock.FormatPtr(c.ExpiresAt), ConsentEndsAt: clock.FormatPtr(c.ConsentEndsAt),
		CertificateExpiresAt: clock.FormatPtr(c.CertificateExpiresAt()),
		CreatedAt:            clock.Format(c.CreatedAt), CreatedBy: orNull(c.CreatedBy), UpdatedAt: clock.Format(c.UpdatedAt), UpdatedBy: orNull(c.UpdatedBy),
		UsedBy: showAll(usage.Workflows, func(u connection.User) connectionUser {
			return connectionUser{WorkflowID: u.ID, Name: u.Name, Active: u.Active}
		}),
		WaitingRuns: usage.Waiting,
	}
}

func describeConnection(ctx context.Context, service *connection.Service, c connection.Connection) (connectionBody, error) {
	all, err := service.Usage(ctx, transport.Actor(ctx), []string{c.Name})
	if err != nil {
		return connectionBody{}, err
	}
	body, usage := showConnection(c, all[c.Name]), all[c.Name]
	places, err := service.Places(ctx, transport.Actor(ctx), c.Name, usage)
	for i, place := range places {
		body.UsedBy[i].Steps, body.UsedBy[i].Triggers = orEmpty(place.Steps), orEmpty(place.Triggers)
	}
	return body, err
}

func (h *connections) reply(ctx context.Context, c connection.Connection) (*transport.Reply, error) {
	body, err := describeConnection(ctx, h.connections, c)
	if err != nil {
		return nil, err
	}
	return transport.OK(body), nil
}

func (h *connections) list(ctx context.Context, in *transport.Page) (*transport.Reply, error) {
	var usage map[string]connection.Usage
	return transport.Paginate(ctx, h.cursors, *in, []string{"connections"},
		func(p paging.Request) (paging.Page[connection.Connection], error) {
			found, err := h.connections.List(ctx, transport.Actor(ctx), p)
			if err != nil {
				return found, err
			}
			names := showAll(found.Items, func(c connection.Connection) string { return c.Name })
			usage, err = h.connections.Usage(ctx, transport.Actor(ctx), names)
			return found, err
		},
		func(c connection.Connection) connectionBody { return showConnection(c, usage[c.Name]) })
}

// newConnectionRequest describes a connection to create or, with the consent of a
// person, to connect.
type newConnectionRequest struct {
	Body struct {
		Name        *string            `json:"name"`
		Integration *string            `json:"integration" null:"ok"`
		Auth        *string            `json:"auth"`
		Fields      map[string]string  `json:"fields"`
		Definition  json.RawMessage    `json:"definition"`
		Access      *connection.Access `json:"access"`
		Members     []string           `json:"members"`
		Hosts       []string           `json:"hosts"`
	} `body:"required"`
}

// wanted returns the connection, if the members that it needs are given.
func (r *newConnectionRequest) wanted() (connection.New, error) {
	b := r.Body
	switch {
	case b.Name == nil:
		return connection.New{}, fault.Field("/name", "is required")
	case b.Auth == nil:
		return connection.New{}, fault.Field("/auth", "is required")
	case b.Integration == nil && b.Definition == nil:
		return connection.New{}, fault.Field("/integration", "is required, or definition for a custom connection")
	case b.Integration != nil && b.Definition != nil:
		return connection.New{}, fault.Field("/definition", "must be left out: the integration has it")
	}
	wanted := connection.New{Name: *b.Name, Auth: *b.Auth, Fields: b.Fields, Definition: b.Definition, Access: b.Access, Members: b.Members, Hosts: b.Hosts}
	if b.Integration != nil {
		wanted.Integration = *b.Integration
	}
	return wanted, nil
}

func (h *connections) prepareCreate(ctx context.Context, in *newConnectionRequest) (connection.Sealed, error) {
	wanted, err := in.wanted()
	if err != nil {
		return connection.Sealed{}, err
	}
	actor := transport.Actor(ctx)
	if wanted, err = h.connections.Discover(ctx, actor, wanted); err != nil {
		return connection.Sealed{}, err
	}
	return h.connections.PrepareCreate(ctx, actor, wanted)
}

func (h *connections) create(ctx context.Context, tx txn.Tx, prepared connection.Sealed) (*transport.Reply, error) {
	service := h.connections.In(tx)
	c, err := service.Create(ctx, transport.Actor(ctx), prepared)
	if err != nil {
		return nil, err
	}
	body, err := describeConnection(ctx, service, c)
	if err != nil {
		return nil, err
	}
	return transport.OK(body).WithHeader("Location", "/v1/connections/"+c.ID), nil
}

func (h *connections) get(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	c, err := h.connections.Get(ctx, transport.Actor(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return h.reply(ctx, c)
}

type updateConnectionRequest struct {
	ID   string `path:"id"`
	Body struct {
		Name       *string            `json:"name"`
		Access     *connection.Access `json:"access"`
		Members    []string           `json:"members"`
		Fields     map[string]string  `json:"fields"`
		Definition json.RawMessage    `json:"definition"`
		Hosts      []string           `json:"hosts"`
	} `body:"required"`
}

func (h *connections) update(ctx context.Context, in *updateConnectionRequest) (*transport.Reply, error) {
	c, err := h.connections.Update(ctx, transport.Actor(ctx), in.ID, connection.Patch{
		Name: in.Body.Name, Access: in.Body.Access, Members: in.Body.Members, Fields: in.Body.Fields, Definition: in.Body.Definition, Hosts: in.Body.Hosts,
	})
	if err != nil {
		return nil, err
	}
	return h.reply(ctx, c)
}

func (h *connections) remove(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	return &transport.Reply{}, h.connections.Delete(ctx, transport.Actor(ctx), in.ID)
}

type connectionTestBody struct {
	OK         bool           `json:"ok"`
	Problem    *string        `json:"problem"`
	Connection connectionBody `json:"connection"`
}

// test responds with 200 also if the test fails: that is its result.
func (h *connections) test(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	result, err := h.tester.Test(ctx, transport.Actor(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	body, err := describeConnection(ctx, h.connections, result.Connection)
	if err != nil {
		return nil, err
	}
	return transport.OK(connectionTestBody{result.Problem == "", orNull(result.Problem), body}), nil
}
