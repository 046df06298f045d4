package node

import (
	"cmp"
	"context"
	"slices"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
)

// Registry lists the nodes.
type Registry interface {
	Nodes(ctx context.Context) ([]Node, error)
}

// Store counts the runs of nodes.
type Store interface {
	// RunsByNode counts the runs of a workspace by the id of the node that owns them.
	RunsByNode(ctx context.Context, workspaceID string) (map[string]int, error)
}

// Service lists the nodes.
type Service struct {
	registry Registry
	store    Store
	this     string
}

// NewService returns the service of the node with the id this.
func NewService(registry Registry, store Store, this string) *Service {
	return &Service{registry: registry, store: store, this: this}
}

// List lists the nodes, most recently started first, each with the number of runs of
// the actor's workspace that it owns.
func (s *Service) List(ctx context.Context, actor auth.Actor, page paging.Request) (paging.Page[Node], error) {
	nodes, err := s.registry.Nodes(ctx)
	if err != nil {
		return paging.Page[Node]{}, err
	}
	runs, err := s.store.RunsByNode(ctx, actor.Workspace.ID)
	if err != nil {
		return paging.Page[Node]{}, err
	}
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return page.After != "" && n.ID >= page.After })
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(b.ID, a.ID) })
	for i := range nodes {
		nodes[i].Runs, nodes[i].This = runs[nodes[i].ID], nodes[i].ID == s.this
	}
	return paging.Cut(nodes, page.Limit, func(n Node) string { return n.ID }), nil
}

// Alone is the registry of a node that does not share its database.
type Alone Node

// Nodes implements Registry. The node is always alive.
func (a Alone) Nodes(context.Context) ([]Node, error) {
	n := Node(a)
	n.SeenAt = clock.Now()
	return []Node{n}, nil
}
