package api

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
)

type keyBody struct {
	ID         string       `json:"id"`
	Name       string       `json:"name"`
	Scopes     []auth.Scope `json:"scopes"`
	Prefix     string       `json:"prefix"`
	CreatedAt  string       `json:"created_at"`
	CreatedBy  *string      `json:"created_by"`
	ExpiresAt  *string      `json:"expires_at"`
	LastUsedAt *string      `json:"last_used_at"`
}

type createdKeyBody struct {
	keyBody
	Key string `json:"key"`
}

func showKey(k auth.Key) keyBody {
	return keyBody{
		ID: k.ID, Name: k.Name, Scopes: k.Scopes, Prefix: k.Prefix(), CreatedAt: clock.Format(k.CreatedAt),
		CreatedBy: orNull(k.CreatedBy), ExpiresAt: clock.FormatPtr(k.ExpiresAt), LastUsedAt: clock.FormatPtr(k.LastUsedAt),
	}
}

type createKeyRequest struct {
	Body struct {
		Name      *string    `json:"name"`
		Scopes    *[]string  `json:"scopes"`
		ExpiresAt *time.Time `json:"expires_at" null:"ok"`
	} `body:"required"`
}

func (s *Server) createKey(ctx context.Context, in *createKeyRequest) (*reply, error) {
	switch {
	case in.Body.Name == nil:
		return nil, fault.Field("/name", "is required")
	case in.Body.Scopes == nil:
		return nil, fault.Field("/scopes", "is required")
	}
	key, value, err := s.Auth.CreateKey(ctx, actorOf(ctx), auth.NewKey{Name: *in.Body.Name, Scopes: *in.Body.Scopes, ExpiresAt: in.Body.ExpiresAt})
	if err != nil {
		return nil, err
	}
	return ok(createdKeyBody{showKey(key), value}).withHeader("Location", "/v1/api-keys/"+key.ID), nil
}

func (s *Server) listKeys(ctx context.Context, in *page) (*reply, error) {
	return paginate(ctx, s, *in, []string{"api-keys"},
		func(p paging.Request) (paging.Page[auth.Key], error) { return s.Auth.ListKeys(ctx, actorOf(ctx), p) }, showKey)
}

type keyRequest struct {
	ID string `path:"id"`
}

func (s *Server) getKey(ctx context.Context, in *keyRequest) (*reply, error) {
	key, err := s.Auth.GetKey(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return ok(showKey(key)), nil
}

func (s *Server) revokeKey(ctx context.Context, in *keyRequest) (*reply, error) {
	return &reply{}, s.Auth.RevokeKey(ctx, actorOf(ctx), in.ID)
}
