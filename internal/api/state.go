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
)

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
	page
	WorkflowID string `query:"workflow_id"`
}

func (s *Server) listState(ctx context.Context, in *listStateRequest) (*reply, error) {
	return paginate(ctx, s, in.page, []string{"state", in.WorkflowID}, func(p paging.Request) (paging.Page[state.Key], error) {
		return s.State.List(ctx, actorOf(ctx), in.WorkflowID, p)
	}, showStateKey)
}

type stateKeyRequest struct {
	Key        string `path:"key"`
	WorkflowID string `query:"workflow_id"`
}

func (s *Server) getStateKey(ctx context.Context, in *stateKeyRequest) (*reply, error) {
	found, err := s.State.Get(ctx, actorOf(ctx), in.WorkflowID, in.Key)
	if err != nil {
		return nil, err
	}
	return ok(showStateKey(found)), nil
}

type putStateKeyRequest struct {
	stateKeyRequest
	Body struct {
		Value     json.RawMessage `json:"value"` // nil if missing; null is a value
		ExpiresIn *string         `json:"expires_in" null:"ok"`
		IfAbsent  bool            `json:"if_absent"`
	} `body:"required"`
}

// putStateKey responds with 201 and the location if it created the key.
func (s *Server) putStateKey(ctx context.Context, in *putStateKeyRequest) (*reply, error) {
	if in.Body.Value == nil {
		return nil, fault.Field("/value", "is required")
	}
	expiresIn := ""
	if in.Body.ExpiresIn != nil {
		if expiresIn = *in.Body.ExpiresIn; expiresIn == "" {
			return nil, fault.Field("/expires_in", "must be a duration such as 90s, 15m, 2h or 3d; leave it out for a key that does not expire")
		}
	}
	stored, err := s.State.Put(ctx, actorOf(ctx), in.WorkflowID, state.Set{Name: in.Key, Value: in.Body.Value, IfAbsent: in.Body.IfAbsent}, expiresIn)
	if err != nil {
		return nil, err
	}
	response := ok(showStateKey(stored.Key))
	if stored.Created {
		at := "/v1/state/" + url.PathEscape(in.Key)
		if in.WorkflowID != "" {
			at += "?workflow_id=" + in.WorkflowID
		}
		response.status = http.StatusCreated
		response.withHeader("Location", at)
	}
	return response, nil
}

func (s *Server) deleteStateKey(ctx context.Context, in *stateKeyRequest) (*reply, error) {
	return &reply{}, s.State.Delete(ctx, actorOf(ctx), in.WorkflowID, in.Key)
}
