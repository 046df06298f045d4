package api

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/txn"
)

type keys struct {
	auth    *auth.Service
	cursors *paging.Codec
}

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

func (h *keys) create(ctx context.Context, tx txn.Tx, in *createKeyRequest) (*transport.Reply, error) {
	switch {
	case in.Body.Name == nil:
		return nil, fault.Field("/name", "is required")
	case in.Body.Scopes == nil:
		return nil, fault.Field("/scopes", "is required")
	}
	key, value, err := h.auth.In(tx).CreateKey(ctx, transport.Actor(ctx), auth.NewKey{Name: *in.Body.Name, Scopes: *in.Body.Scopes, ExpiresAt: in.Body.ExpiresAt})
	if err != nil {
		return nil, err
	}
	return transport.OK(createdKeyBody{showKey(key), value}).WithHeader("Location", "/v1/api-keys/"+key.ID), nil
}

func (h *keys) list(ctx context.Context, in *transport.Page) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, *in, []string{"api-keys"},
		func(p paging.Request) (paging.Page[auth.Key], error) {
			return h.auth.ListKeys(ctx, transport.Actor(ctx), p)
		}, showKey)
}

func (h *keys) get(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	key, err := h.auth.GetKey(ctx, transport.Actor(ctx), in.ID)
	return transport.Respond(showKey, key, err)
}

func (h *keys) revoke(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	return &transport.Reply{}, h.auth.RevokeKey(ctx, transport.Actor(ctx), in.ID)
}
