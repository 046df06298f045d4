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

// valueRoutes handles the requests for secrets or for variables.
type valueRoutes[T, V any] struct {
	server *Server
	kind   string // as in the path
	// values is called per request: tests list the routes without services.
	values func() *secret.Values[T, V]
	show   func(T) any
}

func (s *Server) secretRoutes() valueRoutes[secret.Secret, string] {
	values := func() *secret.Values[secret.Secret, string] { return s.Secrets.Secrets }
	return valueRoutes[secret.Secret, string]{s, "secrets", values, showSecret}
}

func (s *Server) variableRoutes() valueRoutes[secret.Variable, json.RawMessage] {
	values := func() *secret.Values[secret.Variable, json.RawMessage] { return s.Secrets.Variables }
	return valueRoutes[secret.Variable, json.RawMessage]{s, "variables", values, showVariable}
}

type nameRequest struct {
	Name string `path:"name"`
}

func (v valueRoutes[T, V]) list(ctx context.Context, in *page) (*reply, error) {
	return paginate(ctx, v.server, *in, []string{v.kind},
		func(p paging.Request) (paging.Page[T], error) { return v.values().List(ctx, actorOf(ctx), p) }, v.show)
}

func (v valueRoutes[T, V]) get(ctx context.Context, in *nameRequest) (*reply, error) {
	found, err := v.values().Get(ctx, actorOf(ctx), in.Name)
	if err != nil {
		return nil, err
	}
	return ok(v.show(found)), nil
}

// put responds with 201 and the location if it created the value.
func (v valueRoutes[T, V]) put(ctx context.Context, name string, value V) (*reply, error) {
	stored, created, err := v.values().Put(ctx, actorOf(ctx), name, value)
	if err != nil {
		return nil, err
	}
	response := ok(v.show(stored))
	if created {
		response.status = http.StatusCreated
		response.withHeader("Location", "/v1/"+v.kind+"/"+name)
	}
	return response, nil
}

func (v valueRoutes[T, V]) remove(ctx context.Context, in *nameRequest) (*reply, error) {
	return &reply{}, v.values().Delete(ctx, actorOf(ctx), in.Name)
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
	return s.secretRoutes().put(ctx, in.Name, *in.Body.Value)
}

type putVariableRequest struct {
	Name string `path:"name"`
	Body struct {
		Value json.RawMessage `json:"value"` // nil if missing; null is a value
	} `body:"required"`
}

func (s *Server) putVariable(ctx context.Context, in *putVariableRequest) (*reply, error) {
	if in.Body.Value == nil {
		return nil, fault.Field("/value", "is required")
	}
	return s.variableRoutes().put(ctx, in.Name, in.Body.Value)
}

// changes says who created a value, who updated it last, and when.
type changes struct {
	CreatedAt string  `json:"created_at"`
	CreatedBy *string `json:"created_by"`
	UpdatedAt string  `json:"updated_at"`
	UpdatedBy *string `json:"updated_by"`
}

func changesOf(m secret.Metadata) changes {
	return changes{
		CreatedAt: clock.Format(m.CreatedAt), CreatedBy: orNull(m.CreatedBy),
		UpdatedAt: clock.Format(m.UpdatedAt), UpdatedBy: orNull(m.UpdatedBy),
	}
}

type secretBody struct {
	Name string `json:"name"`
	changes
}

func showSecret(s secret.Secret) any { return secretBody{s.Name, changesOf(s.Metadata)} }

type variableBody struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
	changes
}

func showVariable(v secret.Variable) any { return variableBody{v.Name, v.Value, changesOf(v.Metadata)} }
