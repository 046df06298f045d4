package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/transport"
)

// values serves secrets or variables.
type values[T, V any] struct {
	kind string // as in the path
	// service is called per request: tests list the routes without services.
	service func() *secret.Values[T, V]
	show    func(T) any
	cursors *paging.Codec
}

type secrets struct {
	values[secret.Secret, string]
}

type variables struct {
	values[secret.Variable, json.RawMessage]
}

func newSecrets(service *secret.Service, cursors *paging.Codec) secrets {
	return secrets{values[secret.Secret, string]{
		kind: "secrets", service: func() *secret.Values[secret.Secret, string] { return service.Secrets }, show: func(s secret.Secret) any { return secretBody{s.Name, changesOf(s.Metadata)} }, cursors: cursors,
	}}
}

func newVariables(service *secret.Service, cursors *paging.Codec) variables {
	return variables{values[secret.Variable, json.RawMessage]{
		kind: "variables", service: func() *secret.Values[secret.Variable, json.RawMessage] { return service.Variables }, show: func(v secret.Variable) any { return variableBody{v.Name, v.Value, changesOf(v.Metadata)} }, cursors: cursors,
	}}
}

type nameRequest struct {
	Name string `path:"name"`
}

func (h *values[T, V]) list(ctx context.Context, in *transport.Page) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, *in, []string{h.kind},
		func(p paging.Request) (paging.Page[T], error) { return h.service().List(ctx, transport.Actor(ctx), p) }, h.show)
}

func (h *values[T, V]) get(ctx context.Context, in *nameRequest) (*transport.Reply, error) {
	found, err := h.service().Get(ctx, transport.Actor(ctx), in.Name)
	if err != nil {
		return nil, err
	}
	return transport.OK(h.show(found)), nil
}

// store responds with 201 and the location if it created the value.
func (h *values[T, V]) store(ctx context.Context, name string, value V) (*transport.Reply, error) {
	stored, created, err := h.service().Put(ctx, transport.Actor(ctx), name, value)
	if err != nil {
		return nil, err
	}
	response := transport.OK(h.show(stored))
	if created {
		response.Status = http.StatusCreated
		response.WithHeader("Location", "/v1/"+h.kind+"/"+name)
	}
	return response, nil
}

func (h *values[T, V]) remove(ctx context.Context, in *nameRequest) (*transport.Reply, error) {
	return &transport.Reply{}, h.service().Delete(ctx, transport.Actor(ctx), in.Name)
}

type putSecretRequest struct {
	Name string `path:"name"`
	Body struct {
		Value *string `json:"value"`
	} `body:"required"`
}

func (h *secrets) put(ctx context.Context, in *putSecretRequest) (*transport.Reply, error) {
	if in.Body.Value == nil {
		return nil, fault.Field("/value", "is required")
	}
	return h.store(ctx, in.Name, *in.Body.Value)
}

type putVariableRequest struct {
	Name string `path:"name"`
	Body struct {
		Value json.RawMessage `json:"value"` // nil if missing; null is a value
	} `body:"required"`
}

func (h *variables) put(ctx context.Context, in *putVariableRequest) (*transport.Reply, error) {
	if in.Body.Value == nil {
		return nil, fault.Field("/value", "is required")
	}
	return h.store(ctx, in.Name, in.Body.Value)
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

type variableBody struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
	changes
}
