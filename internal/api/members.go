package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
)

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

func (s *Server) listMembers(ctx context.Context, in *page) (*reply, error) {
	return paginate(ctx, s, *in, []string{"members"},
		func(p paging.Request) (paging.Page[account.Member], error) {
			return s.Accounts.Members(ctx, actorOf(ctx), p)
		}, showMember)
}

// personBody is what members see of each other.
type personBody struct {
	ID    string `json:"id"`
	Email string `json:"email"`
	Name  string `json:"name"`
}

// listPeople lists the members of the workspace for those who share things with them.
func (s *Server) listPeople(ctx context.Context, in *page) (*reply, error) {
	return paginate(ctx, s, *in, []string{"people"},
		func(p paging.Request) (paging.Page[account.Member], error) {
			return s.Accounts.Members(ctx, actorOf(ctx), p)
		}, func(m account.Member) personBody { return personBody{m.User.ID, m.User.Email, m.User.Name} })
}

type memberRequest struct {
	ID string `path:"id"`
}

func (s *Server) getMember(ctx context.Context, in *memberRequest) (*reply, error) {
	m, err := s.Accounts.Member(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return ok(showMember(m)), nil
}

type updateMemberRequest struct {
	ID   string `path:"id"`
	Body struct {
		Role *string `json:"role"`
	} `body:"required"`
}

func (s *Server) updateMember(ctx context.Context, in *updateMemberRequest) (*reply, error) {
	if in.Body.Role == nil { // nothing to change
		return s.getMember(ctx, &memberRequest{in.ID})
	}
	m, err := s.Accounts.SetRole(ctx, actorOf(ctx), in.ID, *in.Body.Role)
	if err != nil {
		return nil, err
	}
	return ok(showMember(m)), nil
}

func (s *Server) removeMember(ctx context.Context, in *memberRequest) (*reply, error) {
	return &reply{}, s.Accounts.Remove(ctx, actorOf(ctx), in.ID)
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

func (s *Server) listInvitations(ctx context.Context, in *page) (*reply, error) {
	return paginate(ctx, s, *in, []string{"invitations"},
		func(p paging.Request) (paging.Page[account.Invitation], error) {
			return s.Accounts.Invitations(ctx, actorOf(ctx), p)
		}, showInvitation)
}

type createInvitationRequest struct {
	Body struct {
		Email *string `json:"email"`
		Role  *string `json:"role"`
	} `body:"required"`
}

func (s *Server) createInvitation(ctx context.Context, in *createInvitationRequest) (*reply, error) {
	if err := required(member{"/email", in.Body.Email}, member{"/role", in.Body.Role}); err != nil {
		return nil, err
	}
	made, token, err := s.Accounts.Invite(ctx, actorOf(ctx), *in.Body.Email, *in.Body.Role)
	if err != nil {
		return nil, err
	}
	return ok(createdInvitationBody{showInvitation(made), account.InvitationLink(s.PublicURL(), token)}).withHeader("Location", "/v1/invitations/"+made.ID), nil
}

type invitationRequest struct {
	ID string `path:"id"`
}

func (s *Server) getInvitation(ctx context.Context, in *invitationRequest) (*reply, error) {
	found, err := s.Accounts.Invitation(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return ok(showInvitation(found)), nil
}

func (s *Server) revokeInvitation(ctx context.Context, in *invitationRequest) (*reply, error) {
	return &reply{}, s.Accounts.RevokeInvitation(ctx, actorOf(ctx), in.ID)
}
