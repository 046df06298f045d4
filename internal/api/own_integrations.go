package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/ownintegration"
)

type createIntegrationRequest struct {
	Manifest []byte `body:"text"`
}

// createIntegration adds an integration of the workspace. The body is its manifest.
func (s *Server) createIntegration(ctx context.Context, in *createIntegrationRequest) (commit, error) {
	own, err := s.Integrations.Parse(actorOf(ctx), string(in.Manifest))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*reply, error) {
		own, err := s.Integrations.Create(ctx, actorOf(ctx), own)
		if err != nil {
			return nil, err
		}
		return showOwn(own).withHeader("Location", "/v1/integrations/"+own.ID), nil
	}, nil
}

type replaceIntegrationRequest struct {
	ID       string `path:"id"`
	IfMatch  string `header:"If-Match"`
	Manifest []byte `body:"text"`
}

// replaceIntegration replaces the manifest of an integration of the workspace.
func (s *Server) replaceIntegration(ctx context.Context, in *replaceIntegrationRequest) (commit, error) {
	own, err := s.Integrations.Parse(actorOf(ctx), string(in.Manifest))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*reply, error) {
		own, err := s.Integrations.Replace(ctx, actorOf(ctx), in.ID, own, etag.ParseMatch(in.IfMatch))
		if err != nil {
			return nil, err
		}
		return showOwn(own), nil
	}, nil
}

func showOwn(own ownintegration.Own) *reply {
	return ok(showIntegration(own.Integration)).withHeader("ETag", own.ETag())
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
func (s *Server) convertOpenAPI(ctx context.Context, in *convertOpenAPIRequest) (commit, error) {
	preview, err := parseBool("preview", in.Preview)
	if err != nil {
		return nil, err
	}
	options := ownintegration.ConvertOptions{ID: in.ID, Name: in.Name, Category: in.Category, Server: in.Server, Test: in.Test}
	if in.Operations != "" {
		options.Operations = strings.Split(in.Operations, ",")
	}
	made, err := s.Integrations.Convert(ctx, actorOf(ctx), in.Document, options)
	if err != nil {
		return nil, err
	}
	body := convertedBody{Manifest: made.Text, Operations: orEmpty(made.Operations), Notes: orEmpty(made.Notes)}
	if preview != nil && *preview {
		return func(context.Context) (*reply, error) {
			response := ok(body)
			response.status = http.StatusOK
			return response, nil
		}, nil
	}
	return func(ctx context.Context) (*reply, error) {
		own, err := s.Integrations.Create(ctx, actorOf(ctx), made.Own)
		if err != nil {
			return nil, err
		}
		body.Integration = new(showIntegration(own.Integration))
		return ok(body).withHeader("Location", "/v1/integrations/"+own.ID).withHeader("ETag", own.ETag()), nil
	}, nil
}

type deleteIntegrationRequest struct {
	ID      string `path:"id"`
	IfMatch string `header:"If-Match"`
}

func (s *Server) deleteIntegration(ctx context.Context, in *deleteIntegrationRequest) (*reply, error) {
	return &reply{}, s.Integrations.Delete(ctx, actorOf(ctx), in.ID, etag.ParseMatch(in.IfMatch))
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
func (s *Server) getManifest(ctx context.Context, in *integrationRequest) (*reply, error) {
	m, err := s.Integrations.Manifest(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return ok(manifestBody{
		m.ID, m.Text, clock.Format(m.CreatedAt), orNull(m.CreatedBy), clock.Format(m.UpdatedAt), orNull(m.UpdatedBy),
	}).withHeader("ETag", m.ETag()), nil
}
