package node

import (
	"cmp"
	"context"
	"slices"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
)

// Registry knows the nodes.
type Registry interface {
	Nodes(ctx context.Context) ([]Node, error)
}

// Store knows the runs of nodes.
type Store interface {
	// RunsByNode counts the runs of a workspace that nodes hold, by their ids.
	RunsByNode(ctx context.Context, workspaceID string) (map[string]int, error)
}

// Service tells of the nodes.
type Service struct {
	registry Registry
	store    Store
	this     string
}

// NewService makes the service of the node with that id.
func NewService(registry Registry, store Store, this string) *Service {
	return &Service{registry: registry, store: store, this: this}
}

// List lists the nodes, the last that was started first, each with how many runs
// of the actor's workspace it holds.
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

// Alone is the registry of a node that shares its data with no other.
type Alone Node

// Nodes implements Registry: who can answer is there.
func (a Alone) Nodes(context.Context) ([]Node, error) {
	n := Node(a)
	n.SeenAt = clock.Now()
	return []Node{n}, nil
}
