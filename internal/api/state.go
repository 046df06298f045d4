package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/state"
	"github.com/stepmill/stepmill/internal/transport"
)

// stateKeys serves the keys that are kept between runs.
type stateKeys struct {
	state   *state.Service
	cursors *paging.Codec
}

type stateKeyBody struct {
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
	ExpiresAt *string         `json:"expires_at"`
	CreatedAt string          `json:"created_at"`
	UpdatedAt string          `json:"updated_at"`
}

func showStateKey(k state.Key) stateKeyBody {
	return stateKeyBody{k.Name, k.Value, clock.FormatPtr(k.ExpiresAt), clock.Format(k.CreatedAt), clock.Format(k.UpdatedAt)}
}

type listStateRequest struct {
	transport.Page
	WorkflowID string `query:"workflow_id"`
}

func (h *stateKeys) list(ctx context.Context, in *listStateRequest) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, in.Page, []string{"state", in.WorkflowID}, func(p paging.Request) (paging.Page[state.Key], error) {
		return h.state.List(ctx, transport.Actor(ctx), in.WorkflowID, p)
	}, showStateKey)
}

type stateKeyRequest struct {
	Key        string `path:"key"`
	WorkflowID string `query:"workflow_id"`
}

func (h *stateKeys) get(ctx context.Context, in *stateKeyRequest) (*transport.Reply, error) {
	found, err := h.state.Get(ctx, transport.Actor(ctx), in.WorkflowID, in.Key)
	return transport.Respond(showStateKey, found, err)
}

type putStateKeyRequest struct {
	stateKeyRequest
	Body struct {
		Value     json.RawMessage `json:"value"` // nil if missing; null is a value
		ExpiresIn *string         `json:"expires_in" null:"ok"`
		IfAbsent  bool            `json:"if_absent"`
	} `body:"required"`
}

// put responds with 201 and the location if it created the key.
func (h *stateKeys) put(ctx context.Context, in *putStateKeyRequest) (*transport.Reply, error) {
	if in.Body.Value == nil {
		return nil, fault.Field("/value", "is required")
	}
	expiresIn := ""
	if in.Body.ExpiresIn != nil {
		if expiresIn = *in.Body.ExpiresIn; expiresIn == "" {
			return nil, fault.Field("/expires_in", "must be a duration such as 90s, 15m, 2h or 3d; leave it out for a key that does not expire")
		}
	}
	stored, err := h.state.Put(ctx, transport.Actor(ctx), in.WorkflowID, state.Set{Name: in.Key, Value: in.Body.Value, IfAbsent: in.Body.IfAbsent}, expiresIn)
	if err != nil {
		return nil, err
	}
	response := transport.OK(showStateKey(stored.Key))
	if stored.Created {
		at := "/v1/state/" + url.PathEscape(in.Key)
		if in.WorkflowID != "" {
			at += "?workflow_id=" + in.WorkflowID
		}
		response.Status = http.StatusCreated
		response.WithHeader("Location", at)
	}
	return response, nil
}

func (h *stateKeys) remove(ctx context.Context, in *stateKeyRequest) (*transport.Reply, error) {
	return &transport.Reply{}, h.state.Delete(ctx, transport.Actor(ctx), in.WorkflowID, in.Key)
}
