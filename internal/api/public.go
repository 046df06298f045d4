package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/openapi"
)

// The paths of the health checks.
const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

type noInput struct{}

func (s *Server) openapiYAML(context.Context, *noInput) (*reply, error) {
	r := &reply{raw: openapi.YAML}
	return r.with("Content-Type", "application/yaml"), nil
}

func (s *Server) openapiJSON(context.Context, *noInput) (*reply, error) {
	document, err := openapi.JSON()
	if err != nil {
		return nil, err
	}
	r := &reply{raw: document}
	return r.with("Content-Type", "application/json"), nil
}

type statusBody struct {
	Status string `json:"status"`
}

// health says that the process lives.
func (s *Server) health(context.Context, *noInput) (*reply, error) {
	return ok(statusBody{"ok"}), nil
}

// ready says whether it can work.
func (s *Server) ready(ctx context.Context, _ *noInput) (*reply, error) {
	if err := s.Ready(ctx); err != nil {
		return nil, fault.New(fault.Unavailable, "not ready: %s", err)
	}
	return ok(statusBody{"ready"}), nil
}
