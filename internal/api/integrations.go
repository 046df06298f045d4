package api

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/ownintegration"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/search"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/trigger"
)

type integrations struct {
	integrations *ownintegration.Service
	triggers     *trigger.Service
	cursors      *paging.Codec
}

type integrationBody struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Category string   `json:"category"`
	Docs     string   `json:"docs"`
	Keywords []string `json:"keywords"`
	// Connection is the integration that its connections belong to.
	Connection string                 `json:"connection"`
	Auth       []integrationAuth      `json:"auth"`
	Hosts      []string               `json:"hosts"`
	Operations []integrationOperation `json:"operations"`
	Triggers   []integrationTrigger   `json:"triggers"`
	// Own reports whether the workspace has described it itself.
	Own bool `json:"own"`
	// ConfirmHosts are the hosts that whoever connects to an own integration confirms.
	ConfirmHosts []string `json:"confirm_hosts"`
}

type integrationTrigger struct {
	Type       string                   `json:"type"`
	Title      string                   `json:"title"`
	Summary    *string                  `json:"summary"`
	Every      *string                  `json:"every"`
	Deprecated *integration.Deprecation `json:"deprecated"`
}

type integrationTriggerDetail struct {
	integrationTrigger
	// Connection is the integration that its connection must belong to.
	Connection  string          `json:"connection"`
	InputSchema json.RawMessage `json:"input_schema"`
	Sample      json.RawMessage `json:"sample"`
}

type integrationOperation struct {
	Action     string                   `json:"action"`
	Title      string                   `json:"title"`
	Summary    *string                  `json:"summary"`
	Deprecated *integration.Deprecation `json:"deprecated"`
}

type integrationAuth struct {
	ID        string             `json:"id"`
	Kind      string             `json:"kind"`
	Label     string             `json:"label"`
	Help      *string            `json:"help"`
	Consent   bool               `json:"consent"`
	Fields    []integrationField `json:"fields"`
	AppFields []integrationField `json:"app_fields"`
	Scopes    []string           `json:"scopes"`
}

type integrationField struct {
	Name     string              `json:"name"`
	Title    string              `json:"title"`
	Help     *string             `json:"help"`
	Secret   bool                `json:"secret"`
	Required bool                `json:"required"`
	Default  *string             `json:"default"`
	Enum     []integrationChoice `json:"enum"`
	Pattern  *string             `json:"pattern"`
	Format   *string             `json:"format"`
	Example  *string             `json:"example"`
}

type integrationChoice struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

func showIntegration(i *integration.Integration) integrationBody {
	body := integrationBody{
		ID: i.ID, Name: i.Name, Category: i.Category, Docs: i.Docs, Keywords: orEmpty(i.Keywords),
		Connection: i.ConnectedAs(), Auth: []integrationAuth{}, Hosts: i.HostPatterns(), Operations: []integrationOperation{},
		Triggers: []integrationTrigger{}, Own: integration.IsOwn(i.ID), ConfirmHosts: []string{},
	}
	if body.Own {
		body.ConfirmHosts = i.ConfirmHosts()
	}
	for _, o := range i.OperationOutlines() {
		if !o.Hidden {
			body.Operations = append(body.Operations, integrationOperation{i.FullName(o.Name), o.Title, orNull(o.Summary), o.Deprecated})
		}
	}
	for _, t := range i.TriggerOutlines() {
		body.Triggers = append(body.Triggers, showIntegrationTrigger(i, t))
	}
	for _, a := range i.Connection.Auth {
		body.Auth = append(body.Auth, integrationAuth{
			ID: a.ID, Kind: a.Kind, Label: a.Label, Help: orNull(a.Help), Consent: a.NeedsConsent(),
			Fields:    showAll(i.Fields(&a), showIntegrationField),
			AppFields: showAll(a.AppFields, showIntegrationField),
			Scopes:    orEmpty(i.ScopesOf(&a, nil)),
		})
	}
	return body
}

func showIntegrationTrigger(i *integration.Integration, t integration.Outline) integrationTrigger {
	return integrationTrigger{i.FullName(t.Name), t.Title, orNull(t.Summary), orNull(t.Every), t.Deprecated}
}

func showIntegrationField(f integration.Field) integrationField {
	return integrationField{
		Name: f.Name, Title: f.Title, Help: orNull(f.Help), Secret: f.Secret, Required: f.Check("") != nil,
		Default: orNull(f.Default), Pattern: orNull(f.Pattern), Format: orNull(f.Format), Example: orNull(f.Example),
		Enum: showAll(f.Enum, func(c integration.Choice) integrationChoice { return integrationChoice(c) }),
	}
}

type listIntegrationsRequest struct {
	transport.Page
	Category string `query:"category"`
	Text     string `query:"text"`
}

func (h *integrations) list(ctx context.Context, in *listIntegrationsRequest) (*transport.Reply, error) {
	if in.Category != "" && !slices.Contains(integration.Categories(), in.Category) {
		return nil, transport.Parameter("category", "must be one of %s", strings.Join(integration.Categories(), ", "))
	}
	var query search.Query
	if in.Text != "" {
		var err error
		if query, err = words("text", in.Text); err != nil {
			return nil, err
		}
	}
	return transport.Paginate(ctx, h.cursors, in.Page, []string{"integrations", in.Category, strconv.Quote(in.Text)},
		func(p paging.Request) (paging.Page[*integration.Integration], error) {
			catalog, err := h.integrations.Catalog(ctx, transport.Actor(ctx).Workspace.ID)
			if err != nil {
				return paging.Page[*integration.Integration]{}, err
			}
			var found []*integration.Integration
			for _, one := range catalog.List() {
				if one.ID > p.After && (in.Category == "" || one.Category == in.Category) && query.Matches(one.Entry()) {
					found = append(found, one)
				}
			}
			return paging.Cut(found, p.Limit, func(i *integration.Integration) string { return i.ID }), nil
		}, showIntegration)
}

func (h *integrations) get(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	found, err := h.integrations.Lookup(ctx, transport.Actor(ctx).Workspace.ID, in.ID)
	return transport.Respond(showIntegration, found, err)
}

type integrationTriggerRequest struct {
	ID      string `path:"id"`
	Trigger string `path:"trigger"`
}

func (h *integrations) getTrigger(ctx context.Context, in *integrationTriggerRequest) (*transport.Reply, error) {
	of, err := h.integrations.Lookup(ctx, transport.Actor(ctx).Workspace.ID, in.ID)
	if err != nil {
		return nil, err
	}
	t, outline, err := of.GetTrigger(in.Trigger)
	if err != nil {
		return nil, err
	}
	body := integrationTriggerDetail{showIntegrationTrigger(of, outline), of.ConnectedAs(), json.RawMessage(t.InputSchema()), nil}
	if body.Sample, err = h.triggers.SampleOf(body.Type); err != nil {
		return nil, err
	}
	return transport.OK(body), nil
}

type integrationIconRequest struct {
	documentRequest
	ID string `path:"id"`
}

// getIcon responds with an image that browsers keep for a day, as a page shows
// many of them. It has no scripts; the policy holds if it is opened by itself.
func (h *integrations) getIcon(ctx context.Context, in *integrationIconRequest) (*transport.Reply, error) {
	found, err := h.integrations.Lookup(ctx, transport.Actor(ctx).Workspace.ID, in.ID)
	if err != nil {
		return nil, err
	}
	icon := found.Icon()
	if icon == nil {
		return nil, fault.New(fault.NotFound, "the integration %s has no icon", found.ID)
	}
	return document(&in.documentRequest, "image/svg+xml", icon).
		WithHeader("Cache-Control", "private, max-age=86400").WithHeader("Content-Security-Policy", fileSecurityPolicy), nil
}
