package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/transport"
)

type nodes struct {
	nodes   *node.Service
	cursors *paging.Codec
}

type nodeBody struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Version   string  `json:"version"`
	Role      string  `json:"role"`
	StartedAt string  `json:"started_at"`
	SeenAt    string  `json:"seen_at"`
	ExpiresAt *string `json:"expires_at"`
	Runs      int     `json:"runs"`
	This      bool    `json:"this"`
}

func showNode(n node.Node) nodeBody {
	return nodeBody{
		ID: n.ID, Name: n.Name, Version: n.Version, Role: n.Role, StartedAt: clock.Format(n.StartedAt), SeenAt: clock.Format(n.SeenAt),
		ExpiresAt: clock.FormatPtr(n.ExpiresAt), Runs: n.Runs, This: n.This,
	}
}

func (h *nodes) list(ctx context.Context, in *transport.Page) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, *in, []string{"nodes"},
		func(p paging.Request) (paging.Page[node.Node], error) {
			return h.nodes.List(ctx, transport.Actor(ctx), p)
		}, showNode)
}
