package cluster_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/cluster"
	"github.com/stepmill/stepmill/internal/cluster/peer"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
)

// A process that has its database to itself owns its runs, leads, and is the only node.
func TestSingle(t *testing.T) {
	t.Parallel()
	in := sqlitetest.New(t, store.Notify{})
	alone := cluster.NewSingle(t.Context(), cluster.Config{Self: node.Node{ID: "a"}, Capacity: 1, Store: in.DB, Log: slog.New(slog.DiscardHandler)})
	defer alone.Close()
	if !alone.HoldsLease() {
		t.Error("it does not own its runs")
	}
	if leads, err := alone.TryLead(t.Context(), "housekeeping", time.Minute); !leads || err != nil {
		t.Errorf("it does not lead: %v", err)
	}
	nodes, err := alone.Nodes(t.Context())
	if err != nil || len(nodes) != 1 || nodes[0].ID != "a" || nodes[0].ExpiresAt != nil {
		t.Errorf("nodes: %+v, %v", nodes, err)
	}
	alone.Publish(peer.Everything, "")
	alone.Leave(t.Context())
	if record, err := in.DB.Installation.ServiceClock(t.Context()); err != nil || record.Seen.IsZero() {
		t.Errorf("the clock was not recorded: %+v, %v", record, err)
	}
}
