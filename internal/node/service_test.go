package node_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/paging"
)

type registry []node.Node

func (r registry) Nodes(context.Context) ([]node.Node, error) {
	if r == nil {
		return nil, errors.New("the database is down")
	}
	return r, nil
}

type runs map[string]map[string]int // by workspace and node

func (r runs) RunsByNode(_ context.Context, workspaceID string) (map[string]int, error) {
	if r == nil {
		return nil, errors.New("the database is down")
	}
	return r[workspaceID], nil
}

func actor(workspaceID string) auth.Actor {
	return auth.Actor{Workspace: auth.Workspace{ID: workspaceID}}
}

func TestList(t *testing.T) {
	t.Parallel()
	known := registry{{ID: "node_1", Role: node.RoleServe}, {ID: "node_3", Role: node.RoleWorker}, {ID: "node_2", Role: node.RoleServe}}
	held := runs{"ws_1": {"node_1": 4, "node_3": 1, "node_removed": 9}, "ws_2": {"node_2": 7}}
	s := node.NewService(known, held, "node_2")
	list := func(workspaceID, after string, limit int) paging.Page[node.Node] {
		t.Helper()
		page, err := s.List(t.Context(), actor(workspaceID), paging.Request{Limit: limit, After: after})
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	one, two, three := node.Node{ID: "node_1", Role: node.RoleServe}, node.Node{ID: "node_2", Role: node.RoleServe, This: true}, node.Node{ID: "node_3", Role: node.RoleWorker}
	with := func(n node.Node, runs int) node.Node {
		n.Runs = runs
		return n
	}
	for _, tc := range []struct {
		workspace, after string
		limit            int
		want             paging.Page[node.Node]
	}{
		{"ws_1", "", 20, paging.Page[node.Node]{Items: []node.Node{with(three, 1), two, with(one, 4)}}},
		{"ws_2", "", 20, paging.Page[node.Node]{Items: []node.Node{three, with(two, 7), one}}},
		{"ws_1", "", 2, paging.Page[node.Node]{Items: []node.Node{with(three, 1), two}, Next: "node_2"}},
		{"ws_1", "node_2", 2, paging.Page[node.Node]{Items: []node.Node{with(one, 4)}}},
		{"ws_1", "node_1", 2, paging.Page[node.Node]{Items: []node.Node{}}},
	} {
		if diff := cmp.Diff(tc.want, list(tc.workspace, tc.after, tc.limit)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc, diff)
		}
	}
	if known[1].ID != "node_3" || known[2].This || known[0].Runs != 0 {
		t.Errorf("the registry was changed: %+v", known)
	}
}

func TestListReturnsErrors(t *testing.T) {
	t.Parallel()
	for _, s := range []*node.Service{node.NewService(registry(nil), runs{}, "node_1"), node.NewService(registry{}, runs(nil), "node_1")} {
		if page, err := s.List(t.Context(), actor("ws_1"), paging.Request{Limit: 20}); err == nil {
			t.Errorf("List returned %+v", page)
		}
	}
}

// A single node is always listed as alive.
func TestAlone(t *testing.T) {
	t.Parallel()
	before := time.Now().Add(-time.Second)
	nodes, err := node.Alone{ID: "node_1", Name: "host", StartedAt: before}.Nodes(t.Context())
	if err != nil || len(nodes) != 1 || nodes[0].ID != "node_1" || nodes[0].SeenAt.Before(before) || nodes[0].ExpiresAt != nil {
		t.Errorf("%+v, %v", nodes, err)
	}
}
