package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/txn"
)

type members struct {
	accounts  *account.Service
	publicURL func() string
	cursors   *paging.Codec
}

type memberBody struct {
	ID         string       `json:"id"`
	Email      string       `json:"email"`
	Name       string       `json:"name"`
	Role       account.Role `json:"role"`
	CreatedAt  string       `json:"created_at"`
	LastSeenAt *string      `json:"last_seen_at"`
}

func showMember(m account.Member) memberBody {
	return memberBody{m.User.ID, m.User.Email, m.User.Name, m.Role, clock.Format(m.JoinedAt), clock.FormatPtr(m.User.SeenAt)}
}

func (h *members) list(ctx context.Context, in *transport.Page) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, *in, []string{"members"},
		func(p paging.Request) (paging.Page[account.Member], error) {
			return h.accounts.Members(ctx, transport.Actor(ctx), p)
		}, showMember)
}

// personBody is what members see of each other.
type personBody struct {
	ID    string `json:"id"`
	Email string `json:"email"`
	Name  string `json:"name"`
}

// listPeople lists the members of the workspace for those who share things with them.
func (h *members) listPeople(ctx context.Context, in *transport.Page) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, *in, []string{"people"},
		func(p paging.Request) (paging.Page[account.Member], error) {
			return h.accounts.Members(ctx, transport.Actor(ctx), p)
		}, func(m account.Member) personBody { return personBody{m.User.ID, m.User.Email, m.User.Name} })
}

func (h *members) get(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	m, err := h.accounts.Member(ctx, transport.Actor(ctx), in.ID)
	return transport.Respond(showMember, m, err)
}

type updateMemberRequest struct {
	ID   string `path:"id"`
	Body struct {
		Role *string `json:"role"`
	} `body:"required"`
}

func (h *members) update(ctx context.Context, in *updateMemberRequest) (*transport.Reply, error) {
	if in.Body.Role == nil { // nothing to change
		return h.get(ctx, &idRequest{in.ID})
	}
	m, err := h.accounts.SetRole(ctx, transport.Actor(ctx), in.ID, *in.Body.Role)
	return transport.Respond(showMember, m, err)
}

func (h *members) remove(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	return &transport.Reply{}, h.accounts.Remove(ctx, transport.Actor(ctx), in.ID)
}

type invitationBody struct {
	ID        string       `json:"id"`
	Email     string       `json:"email"`
	Role      account.Role `json:"role"`
	CreatedAt string       `json:"created_at"`
	CreatedBy *string      `json:"created_by"`
	ExpiresAt string       `json:"expires_at"`
}

type createdInvitationBody struct {
	invitationBody
	Link string `json:"link"`
}

func showInvitation(in account.Invitation) invitationBody {
	return invitationBody{in.ID, in.Email, in.Role, clock.Format(in.CreatedAt), orNull(in.CreatedBy), clock.Format(in.ExpiresAt)}
}

func (h *members) listInvitations(ctx context.Context, in *transport.Page) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, *in, []string{"invitations"},
		func(p paging.Request) (paging.Page[account.Invitation], error) {
			return h.accounts.Invitations(ctx, transport.Actor(ctx), p)
		}, showInvitation)
}

type createInvitationRequest struct {
	Body struct {
		Email *string `json:"email"`
		Role  *string `json:"role"`
	} `body:"required"`
}

func (h *members) invite(ctx context.Context, tx txn.Tx, in *createInvitationRequest) (*transport.Reply, error) {
	if err := required(member{"/email", in.Body.Email}, member{"/role", in.Body.Role}); err != nil {
		return nil, err
	}
	made, token, err := h.accounts.In(tx).Invite(ctx, transport.Actor(ctx), *in.Body.Email, *in.Body.Role)
	if err != nil {
		return nil, err
	}
	return transport.OK(createdInvitationBody{showInvitation(made), account.InvitationLink(h.publicURL(), token)}).WithHeader("Location", "/v1/invitations/"+made.ID), nil
}

func (h *members) getInvitation(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	found, err := h.accounts.Invitation(ctx, transport.Actor(ctx), in.ID)
	return transport.Respond(showInvitation, found, err)
}

func (h *members) revokeInvitation(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	return &transport.Reply{}, h.accounts.RevokeInvitation(ctx, transport.Actor(ctx), in.ID)
}
