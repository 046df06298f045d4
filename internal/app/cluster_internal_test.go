package app

import (
	"log/slog"
	"testing"

	"github.com/stepmill/stepmill/internal/cluster/heartbeat"
)

func TestHoldsLease(t *testing.T) {
	t.Parallel()
	single := &Server{}
	if !single.holdsLease() {
		t.Error("a single process does not own its runs")
	}
	silent := heartbeat.New(heartbeat.Config{}, nil, nil, nil, slog.New(slog.DiscardHandler))
	if s := (&Server{cluster: &cluster{keeper: silent}}); s.holdsLease() {
		t.Error("a node without a heartbeat owns runs")
	}
}
