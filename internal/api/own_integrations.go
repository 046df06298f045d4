package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/ownintegration"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/txn"
)

type createIntegrationRequest struct {
	Manifest []byte `body:"text"`
}

func (h *integrations) prepareCreate(ctx context.Context, in *createIntegrationRequest) (ownintegration.Own, error) {
	return h.integrations.Parse(transport.Actor(ctx), string(in.Manifest))
}

func (h *integrations) create(ctx context.Context, tx txn.Tx, prepared ownintegration.Own) (*transport.Reply, error) {
	own, err := h.integrations.In(tx).Create(ctx, transport.Actor(ctx), prepared)
	if err != nil {
		return nil, err
	}
	return showOwn(own).WithHeader("Location", "/v1/integrations/"+own.ID), nil
}

type replaceIntegrationRequest struct {
	ID       string `path:"id"`
	IfMatch  string `header:"If-Match"`
	Manifest []byte `body:"text"`
}

type replacement struct {
	id    string
	own   ownintegration.Own
	match etag.Match
}

func (h *integrations) prepareReplace(ctx context.Context, in *replaceIntegrationRequest) (replacement, error) {
	own, err := h.integrations.Parse(transport.Actor(ctx), string(in.Manifest))
	return replacement{in.ID, own, etag.ParseMatch(in.IfMatch)}, err
}

func (h *integrations) replace(ctx context.Context, tx txn.Tx, r replacement) (*transport.Reply, error) {
	own, err := h.integrations.In(tx).Replace(ctx, transport.Actor(ctx), r.id, r.own, r.match)
	if err != nil {
		return nil, err
	}
	return showOwn(own), nil
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

// conversion is an integration for an API that an OpenAPI document describes.
type conversion struct {
	body    convertedBody
	own     ownintegration.Own
	preview bool
}

func (h *integrations) prepareConversion(ctx context.Context, in *convertOpenAPIRequest) (conversion, error) {
	preview, err := parseBool("preview", in.Preview)
	if err != nil {
		return conversion{}, err
	}
	options := ownintegration.ConvertOptions{ID: in.ID, Name: in.Name, Category: in.Category, Server: in.Server, Test: in.Test}
	if in.Operations != "" {
		options.Operations = strings.Split(in.Operations, ",")
	}
	made, err := h.integrations.Convert(ctx, transport.Actor(ctx), in.Document, options)
	if err != nil {
		return conversion{}, err
	}
	body := convertedBody{Manifest: made.Text, Operations: orEmpty(made.Operations), Notes: orEmpty(made.Notes)}
	return conversion{body, made.Own, preview != nil && *preview}, nil
}

// addConverted adds the integration. A preview adds nothing, and responds with 200.
func (h *integrations) addConverted(ctx context.Context, tx txn.Tx, c conversion) (*transport.Reply, error) {
	if c.preview {
		return &transport.Reply{Status: http.StatusOK, Body: c.body}, nil
	}
	own, err := h.integrations.In(tx).Create(ctx, transport.Actor(ctx), c.own)
	if err != nil {
		return nil, err
	}
	c.body.Integration = new(showIntegration(own.Integration))
	return transport.OK(c.body).WithHeader("Location", "/v1/integrations/"+own.ID).WithHeader("ETag", own.ETag()), nil
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

func (h *integrations) getManifest(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	m, err := h.integrations.Manifest(ctx, transport.Actor(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return transport.OK(manifestBody{
		m.ID, m.Text, clock.Format(m.CreatedAt), orNull(m.CreatedBy), clock.Format(m.UpdatedAt), orNull(m.UpdatedBy),
	}).WithHeader("ETag", m.ETag()), nil
}
