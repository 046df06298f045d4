package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/secret"
)

type secretBody struct {
	Name      string  `json:"name"`
	CreatedAt string  `json:"created_at"`
	CreatedBy *string `json:"created_by"`
	UpdatedAt string  `json:"updated_at"`
	UpdatedBy *string `json:"updated_by"`
}

func showSecret(s secret.Secret) secretBody {
	return secretBody{
		Name: s.Name, CreatedAt: clock.Format(s.CreatedAt), CreatedBy: orNull(s.CreatedBy),
		UpdatedAt: clock.Format(s.UpdatedAt), UpdatedBy: orNull(s.UpdatedBy),
	}
}

type variableBody struct {
	Name      string          `json:"name"`
	Value     json.RawMessage `json:"value"`
	CreatedAt string          `json:"created_at"`
	CreatedBy *string         `json:"created_by"`
	UpdatedAt string          `json:"updated_at"`
	UpdatedBy *string         `json:"updated_by"`
}

func showVariable(v secret.Variable) variableBody {
	return variableBody{
		Name: v.Name, Value: v.Value, CreatedAt: clock.Format(v.CreatedAt), CreatedBy: orNull(v.CreatedBy),
		UpdatedAt: clock.Format(v.UpdatedAt), UpdatedBy: orNull(v.UpdatedBy),
	}
}

type nameRequest struct {
	Name string `path:"name"`
}

func (s *Server) listSecrets(ctx context.Context, in *page) (*reply, error) {
	return listing(ctx, s, *in, []string{"secrets"},
		func(p paging.Request) (paging.Page[secret.Secret], error) {
			return s.Secrets.ListSecrets(ctx, actorOf(ctx), p)
		},
		showSecret)
}

func (s *Server) getSecret(ctx context.Context, in *nameRequest) (*reply, error) {
	found, err := s.Secrets.GetSecret(ctx, actorOf(ctx), in.Name)
	if err != nil {
		return nil, err
	}
	return ok(showSecret(found)), nil
}

type putSecretRequest struct {
	Name string `path:"name"`
	Body struct {
		Value *string `json:"value"`
	} `body:"required"`
}

func (s *Server) putSecret(ctx context.Context, in *putSecretRequest) (*reply, error) {
	if in.Body.Value == nil {
		return nil, fault.Field("/value", "is required")
	}
	made, created, err := s.Secrets.PutSecret(ctx, actorOf(ctx), in.Name, *in.Body.Value)
	if err != nil {
		return nil, err
	}
	return put(showSecret(made), created, "/v1/secrets/"+made.Name), nil
}

// put is the answer to a PUT: another one when it made something new.
func put(body any, created bool, location string) *reply {
	answer := ok(body)
	if created {
		answer.status = http.StatusCreated
		return answer.with("Location", location)
	}
	return answer
}

func (s *Server) deleteSecret(ctx context.Context, in *nameRequest) (*reply, error) {
	return &reply{}, s.Secrets.DeleteSecret(ctx, actorOf(ctx), in.Name)
}

func (s *Server) listVariables(ctx context.Context, in *page) (*reply, error) {
	return listing(ctx, s, *in, []string{"variables"},
		func(p paging.Request) (paging.Page[secret.Variable], error) {
			return s.Secrets.ListVariables(ctx, actorOf(ctx), p)
		},
		showVariable)
}

func (s *Server) getVariable(ctx context.Context, in *nameRequest) (*reply, error) {
	found, err := s.Secrets.GetVariable(ctx, actorOf(ctx), in.Name)
	if err != nil {
		return nil, err
	}
	return ok(showVariable(found)), nil
}

type putVariableRequest struct {
	Name string `path:"name"`
	Body struct {
		Value json.RawMessage `json:"value"`
	} `body:"required"`
}

func (s *Server) putVariable(ctx context.Context, in *putVariableRequest) (*reply, error) {
	if in.Body.Value == nil {
		return nil, fault.Field("/value", "is required")
	}
	made, created, err := s.Secrets.PutVariable(ctx, actorOf(ctx), in.Name, in.Body.Value)
	if err != nil {
		return nil, err
	}
	return put(showVariable(made), created, "/v1/variables/"+made.Name), nil
}

func (s *Server) deleteVariable(ctx context.Context, in *nameRequest) (*reply, error) {
	return &reply{}, s.Secrets.DeleteVariable(ctx, actorOf(ctx), in.Name)
}
