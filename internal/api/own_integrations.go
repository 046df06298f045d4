package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/ownintegration"
	"github.com/stepmill/stepmill/internal/transport"
)

type createIntegrationRequest struct {
	Manifest []byte `body:"text"`
}

// create adds an integration of the workspace. The body is its manifest.
func (h *integrations) create(ctx context.Context, in *createIntegrationRequest) (transport.Commit, error) {
	own, err := h.integrations.Parse(transport.Actor(ctx), string(in.Manifest))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*transport.Reply, error) {
		own, err := h.integrations.Create(ctx, transport.Actor(ctx), own)
		if err != nil {
			return nil, err
		}
		return showOwn(own).WithHeader("Location", "/v1/integrations/"+own.ID), nil
	}, nil
}

type replaceIntegrationRequest struct {
	ID       string `path:"id"`
	IfMatch  string `header:"If-Match"`
	Manifest []byte `body:"text"`
}

// replace replaces the manifest of an integration of the workspace.
func (h *integrations) replace(ctx context.Context, in *replaceIntegrationRequest) (transport.Commit, error) {
	own, err := h.integrations.Parse(transport.Actor(ctx), string(in.Manifest))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*transport.Reply, error) {
		own, err := h.integrations.Replace(ctx, transport.Actor(ctx), in.ID, own, etag.ParseMatch(in.IfMatch))
		if err != nil {
			return nil, err
		}
		return showOwn(own), nil
	}, nil
}

func showOwn(own ownintegration.Own) *transport.Reply {
	return transport.OK(showIntegration(own.Integration)).WithHeader("ETag", own.ETag())
}

type convertOpenAPIRequest struct {
	ID         string `query:"id"`
	Name       string `query:"name"`
	Category   string `query:"category"`
	Server     string `query:"server"`
	Operations string `query:"operations"`
	Test       string `query:"test"`
	Preview    string `query:"preview"`
	Document   []byte `body:"document"`
}

type convertedBody struct {
	// Integration is nil for a preview.
	Integration *integrationBody      `json:"integration"`
	Manifest    string                `json:"manifest"`
	Operations  []string              `json:"operations"`
	Notes       []ownintegration.Note `json:"notes"`
}

// convertOpenAPI adds an integration for an API that an OpenAPI document describes. A
// preview adds nothing, and responds with 200.
func (h *integrations) convertOpenAPI(ctx context.Context, in *convertOpenAPIRequest) (transport.Commit, error) {
	preview, err := parseBool("preview", in.Preview)
	if err != nil {
		return nil, err
	}
	options := ownintegration.ConvertOptions{ID: in.ID, Name: in.Name, Category: in.Category, Server: in.Server, Test: in.Test}
	if in.Operations != "" {
		options.Operations = strings.Split(in.Operations, ",")
	}
	made, err := h.integrations.Convert(ctx, transport.Actor(ctx), in.Document, options)
	if err != nil {
		return nil, err
	}
	body := convertedBody{Manifest: made.Text, Operations: orEmpty(made.Operations), Notes: orEmpty(made.Notes)}
	if preview != nil && *preview {
		return func(context.Context) (*transport.Reply, error) {
			response := transport.OK(body)
			response.Status = http.StatusOK
			return response, nil
		}, nil
	}
	return func(ctx context.Context) (*transport.Reply, error) {
		own, err := h.integrations.Create(ctx, transport.Actor(ctx), made.Own)
		if err != nil {
			return nil, err
		}
		body.Integration = new(showIntegration(own.Integration))
		return transport.OK(body).WithHeader("Location", "/v1/integrations/"+own.ID).WithHeader("ETag", own.ETag()), nil
	}, nil
}

type deleteIntegrationRequest struct {
	ID      string `path:"id"`
	IfMatch string `header:"If-Match"`
}

func (h *integrations) remove(ctx context.Context, in *deleteIntegrationRequest) (*transport.Reply, error) {
	return &transport.Reply{}, h.integrations.Delete(ctx, transport.Actor(ctx), in.ID, etag.ParseMatch(in.IfMatch))
}

type manifestBody struct {
	ID        string  `json:"id"`
	Manifest  string  `json:"manifest"`
	CreatedAt string  `json:"created_at"`
	CreatedBy *string `json:"created_by"`
	UpdatedAt string  `json:"updated_at"`
	UpdatedBy *string `json:"updated_by"`
}

// getManifest returns the manifest of an integration of the workspace as it was written.
func (h *integrations) getManifest(ctx context.Context, in *integrationRequest) (*transport.Reply, error) {
	m, err := h.integrations.Manifest(ctx, transport.Actor(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return transport.OK(manifestBody{
		m.ID, m.Text, clock.Format(m.CreatedAt), orNull(m.CreatedBy), clock.Format(m.UpdatedAt), orNull(m.UpdatedBy),
	}).WithHeader("ETag", m.ETag()), nil
}
