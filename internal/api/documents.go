package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/openapi"
)

// documents serves the documents that describe the service.
type documents struct{ workflows *workflow.Service }

// documentRequest requests a document that changes only with the version of the
// program.
type documentRequest struct {
	IfNoneMatch string `header:"If-None-Match"`
}

// document responds with a text that caches may store but must revalidate.
func document(in *documentRequest, mediaType string, text []byte) *transport.Reply {
	sum := sha256.Sum256(text)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	r := (&transport.Reply{}).WithHeader("ETag", tag).WithHeader("Cache-Control", "no-cache")
	if etag.NoneMatches(in.IfNoneMatch, tag) {
		r.Status = http.StatusNotModified
		return r
	}
	r.Raw = text
	return r.WithHeader("Content-Type", mediaType)
}

func (h *documents) openapiYAML(_ context.Context, in *documentRequest) (*transport.Reply, error) {
	return document(in, transport.MediaYAML, openapi.YAML), nil
}

func (h *documents) openapiJSON(_ context.Context, in *documentRequest) (*transport.Reply, error) {
	text, err := openapi.JSON()
	if err != nil {
		return nil, err
	}
	return document(in, "application/json", text), nil
}

type workflowSchemaRequest struct {
	documentRequest

	Services string `query:"services"`
}

func (h *documents) workflowSchema(_ context.Context, in *workflowSchemaRequest) (*transport.Reply, error) {
	services, err := parseBool("services", in.Services)
	if err != nil {
		return nil, err
	}
	text, err := h.workflows.Schema(services == nil || *services)
	if err != nil {
		return nil, err
	}
	return document(&in.documentRequest, "application/schema+json", text), nil
}

func (h *documents) integrationSchema(_ context.Context, in *documentRequest) (*transport.Reply, error) {
	text, err := integration.Schema()
	if err != nil {
		return nil, err
	}
	return document(in, "application/schema+json", text), nil
}
