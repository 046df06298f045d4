package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/transport"
)

// welcome serves people who have no session yet: the first owner, and those with a link to
// reset a password or to accept an invitation.
type welcome struct {
	accounts    *account.Service
	sessions    *sessions
	hasProvider bool // people can sign in with an identity provider
}

type welcomeBody struct {
	Needed bool `json:"needed"`
	OIDC   bool `json:"oidc"`
}

// get tells a signed-out browser whether setup is needed and how to sign in.
func (h *welcome) get(ctx context.Context, _ *noInput) (*transport.Reply, error) {
	needed, err := h.accounts.NeedsSetup(ctx)
	if err != nil {
		return nil, err
	}
	return transport.OK(welcomeBody{Needed: needed, OIDC: h.hasProvider}), nil
}

type createOwnerRequest struct {
	Body struct {
		Token    *string `json:"token"`
		Email    *string `json:"email"`
		Name     *string `json:"name"`
		Password *string `json:"password"`
	} `body:"required"`
}

func (h *welcome) createOwner(ctx context.Context, in *createOwnerRequest) (*transport.Reply, error) {
	b := in.Body
	if err := required(member{"/token", b.Token}, member{"/email", b.Email}, member{"/name", b.Name}, member{"/password", b.Password}); err != nil {
		return nil, err
	}
	if err := h.sessions.limits.count(ctx, ""); err != nil {
		return nil, err
	}
	signedIn, token, err := h.accounts.CreateFirstOwner(ctx, *b.Token, *b.Email, *b.Name, *b.Password, transport.CallerOf(ctx).Client)
	return h.sessions.signedInReply(ctx, signedIn, token, err)
}

// member is a member of a body, nil if it is missing.
type member struct {
	pointer string
	value   *string
}

// required returns an error for every missing member.
func required(members ...member) error {
	var missing []error
	for _, m := range members {
		if m.value == nil {
			missing = append(missing, fault.Field(m.pointer, "is required"))
		}
	}
	return fault.Fields(missing...)
}

type resetPasswordRequest struct {
	Body struct {
		Token    *string `json:"token"`
		Password *string `json:"password"`
	} `body:"required"`
}

func (h *welcome) resetPassword(ctx context.Context, in *resetPasswordRequest) (*transport.Reply, error) {
	if err := required(member{"/token", in.Body.Token}, member{"/password", in.Body.Password}); err != nil {
		return nil, err
	}
	if err := h.sessions.limits.count(ctx, ""); err != nil {
		return nil, err
	}
	signedIn, token, err := h.accounts.ResetPassword(ctx, *in.Body.Token, *in.Body.Password, transport.CallerOf(ctx).Client)
	return h.sessions.signedInReply(ctx, signedIn, token, err)
}

type invitedBody struct {
	Workspace struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"workspace"`
	Email       string       `json:"email"`
	Role        account.Role `json:"role"`
	InvitedBy   *string      `json:"invited_by"`
	HasAccount  bool         `json:"has_account"`
	HasPassword bool         `json:"has_password"`
	ExpiresAt   string       `json:"expires_at"`
}

type previewInvitationRequest struct {
	Body struct {
		Token *string `json:"token"`
	} `body:"required"`
}

func (h *welcome) previewInvitation(ctx context.Context, in *previewInvitationRequest) (*transport.Reply, error) {
	if err := required(member{"/token", in.Body.Token}); err != nil {
		return nil, err
	}
	if err := h.sessions.limits.count(ctx, ""); err != nil {
		return nil, err
	}
	invited, err := h.accounts.PreviewInvitation(ctx, *in.Body.Token)
	if err != nil {
		return nil, err
	}
	body := invitedBody{
		Email: invited.Email, Role: invited.Role, InvitedBy: orNull(invited.By),
		HasAccount: invited.HasAccount, HasPassword: invited.HasPassword, ExpiresAt: clock.Format(invited.ExpiresAt),
	}
	body.Workspace.ID, body.Workspace.Name = invited.Workspace.ID, invited.Workspace.Name
	return transport.OK(body), nil
}

type acceptInvitationRequest struct {
	Body struct {
		Token    *string `json:"token"`
		Name     *string `json:"name"`
		Password *string `json:"password"`
	} `body:"required"`
}

func (h *welcome) acceptInvitation(ctx context.Context, in *acceptInvitationRequest) (*transport.Reply, error) {
	if err := required(member{"/token", in.Body.Token}, member{"/password", in.Body.Password}); err != nil {
		return nil, err
	}
	invited, err := h.accounts.PreviewInvitation(ctx, *in.Body.Token)
	if err != nil && !fault.Is(err, fault.LinkNotFound) {
		return nil, err
	}
	if err := h.sessions.limits.count(ctx, invited.Email); err != nil {
		return nil, err
	}
	name := ""
	if in.Body.Name != nil {
		name = *in.Body.Name
	}
	signedIn, token, err := h.accounts.Accept(ctx, *in.Body.Token, name, *in.Body.Password, transport.CallerOf(ctx).Client)
	return h.sessions.signedInReply(ctx, signedIn, token, err)
}
