package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/openapi"
)

// The paths of the health checks.
const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

type noInput struct{}

// documentRequest requests a document that changes only with the version of the
// program.
type documentRequest struct {
	IfNoneMatch string `header:"If-None-Match"`
}

// document responds with a text that caches may store but must revalidate.
func document(in *documentRequest, mediaType string, text []byte) *reply {
	sum := sha256.Sum256(text)
	etag := `"` + hex.EncodeToString(sum[:16]) + `"`
	r := (&reply{}).withHeader("ETag", etag).withHeader("Cache-Control", "no-cache")
	if matches(in.IfNoneMatch, etag) {
		r.status = http.StatusNotModified
		return r
	}
	r.raw = text
	return r.withHeader("Content-Type", mediaType)
}

// matches reports whether an If-None-Match header matches the tag. It ignores
// weakness, which a cache in between may have added.
func matches(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
			return true
		}
	}
	return false
}

func (s *Server) openapiYAML(_ context.Context, in *documentRequest) (*reply, error) {
	return document(in, "application/yaml", openapi.YAML), nil
}

func (s *Server) openapiJSON(_ context.Context, in *documentRequest) (*reply, error) {
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

func (s *Server) workflowSchema(_ context.Context, in *workflowSchemaRequest) (*reply, error) {
	services, err := parseBool("services", in.Services)
	if err != nil {
		return nil, err
	}
	text, err := s.Workflows.Schema(services == nil || *services)
	if err != nil {
		return nil, err
	}
	return document(&in.documentRequest, "application/schema+json", text), nil
}

func (s *Server) integrationSchema(_ context.Context, in *documentRequest) (*reply, error) {
	text, err := integration.Schema()
	if err != nil {
		return nil, err
	}
	return document(in, "application/schema+json", text), nil
}

type statusBody struct {
	Status string `json:"status"`
}

type readinessBody struct {
	Status   string   `json:"status"`
	Warnings []string `json:"warnings"`
}

// health reports that the process is alive.
func (s *Server) health(context.Context, *noInput) (*reply, error) {
	return ok(statusBody{"ok"}), nil
}

// ready reports whether the service can handle requests.
func (s *Server) ready(ctx context.Context, _ *noInput) (*reply, error) {
	if err := s.Ready(ctx); err != nil {
		return nil, fault.New(fault.Unavailable, "not ready: %s", err)
	}
	body := readinessBody{"ready", []string{}}
	if s.Warnings != nil {
		body.Warnings = s.Warnings()
	}
	return ok(body), nil
}
