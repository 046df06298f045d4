package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/transport"
)

type health struct {
	readiness func(context.Context) error
	warnings  func() []string // nil: there are none
}

type noInput struct{}

type statusBody struct {
	Status string `json:"status"`
}

type readinessBody struct {
	Status   string   `json:"status"`
	Warnings []string `json:"warnings"`
}

func (h *health) alive(context.Context, *noInput) (*transport.Reply, error) {
	return transport.OK(statusBody{"ok"}), nil
}

func (h *health) ready(ctx context.Context, _ *noInput) (*transport.Reply, error) {
	if err := h.readiness(ctx); err != nil {
		return nil, fault.New(fault.Unavailable, "not ready: %s", err)
	}
	body := readinessBody{"ready", []string{}}
	if h.warnings != nil {
		body.Warnings = h.warnings()
	}
	return transport.OK(body), nil
}
