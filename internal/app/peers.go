package app

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cluster"
	"github.com/stepmill/stepmill/internal/cluster/peer"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/run"
)

func (s *Server) clusterConfig() cluster.Config {
	return cluster.Config{Self: s.self(), Capacity: engine.Slots, Store: s.data.store, Process: process{s}, Log: s.log}
}

func (s *Server) self() node.Node {
	host, _ := os.Hostname() // empty if it is not known
	self := node.Node{
		ID: s.node, Name: cmp.Or(s.config.NodeName, host, "unnamed"), Version: config.VersionText(), Role: s.role, Level: release.Known(),
		Listens: s.front.reachableAddresses(), StartedAt: clock.Now(),
	}
	if s.front.listener != nil {
		self.URL = s.publicURL()
	}
	return self
}

// ownAddresses returns the addresses that steps must not reach: those of this
// process, of the other nodes and of the shared database.
func (s *Server) ownAddresses() []netip.AddrPort {
	return slices.Concat(s.front.listenAddresses(), s.topology.Others().Listens)
}

// process lets the topology reach what this process executes. It goes through the server
// because the engine is created after the topology.
type process struct{ server *Server }

func (p process) Leases() []run.Lease        { return p.server.runner.engine.Leases() }
func (p process) AbortLease(lease run.Lease) { p.server.runner.engine.AbortLease(lease) }
func (p process) AbortAll()                  { p.server.runner.engine.AbortAll() }
func (p process) Nudge(runID string)         { p.server.runner.nudge(runID) }

func (p process) OnTakeover() {
	p.server.runner.sender.Wake()
	p.server.runner.wakeTriggers()
}

// OnClockJump makes everything look at the clock again that waits for a time of day.
func (p process) OnClockJump() {
	if p.server.runner.firers != nil {
		p.server.runner.wakeTriggers()
	}
}

// OnMessage handles a change, of another node or of this process. A message without an id
// means that anything of that kind may have changed.
func (p process) OnMessage(m peer.Message) {
	r, changes := &p.server.runner, p.server.changes
	switch m.Kind {
	case peer.RunChanged:
		publish(changes.runs, m.ID)
	case peer.RunEnded:
		p.onRunEnded(m.ID, r.engine.IsActive) // a run that this node executes has not ended elsewhere
	case peer.RunCancelled:
		r.engine.Abort(m.ID)
		p.onRunEnded(m.ID, nil)
	case peer.AnswerArrived:
		r.nudge(m.ID)
	case peer.EventRecorded:
		publish(changes.events, m.ID)
	case peer.Deliverable:
		r.sender.Wake()
	case peer.WorkflowDeleted:
		r.engine.AbortWorkflow(m.ID)
		changes.runs.PublishAll() // subscribers to its runs find them deleted
	case peer.Scheduled:
		r.wakeTriggers()
	case peer.Everything:
		r.wakeTriggers()
		p.onRunEnded("", nil)
		changes.events.PublishAll()
		r.sender.Wake()
	}
}

// announce handles a change that this process has made, and tells the other nodes.
func (s *Server) announce(kind byte, id string) {
	process{s}.OnMessage(peer.Message{Kind: kind, ID: id})
	s.topology.Publish(kind, id)
}

// onRunEnded handles the end of a run on another node. An empty id means that any
// watched run may have ended, other than those of except.
func (p process) onRunEnded(runID string, except func(runID string) bool) {
	if runID == "" {
		go p.checkEndedRuns(except)
	} else {
		p.server.changes.watchers.Ended(runID, nil)
	}
	publish(p.server.changes.runs, runID)
}

// publish notifies the subscribers of an id, or all subscribers if it is empty.
func publish(broker *pubsub.Broker, id string) {
	if id == "" {
		broker.PublishAll()
	} else {
		broker.Publish(id)
	}
}

const endedRunsTimeout = 5 * time.Second

// checkEndedRuns finds the watched runs that have ended on another node.
func (p process) checkEndedRuns(except func(runID string) bool) {
	watchers := p.server.changes.watchers
	watched := watchers.Watched()
	if except != nil {
		watched = slices.DeleteFunc(watched, except)
	}
	if len(watched) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endedRunsTimeout)
	defer cancel()
	ended, err := p.server.data.store.Runs.EndedRuns(ctx, watched)
	if err != nil {
		p.server.log.Debug("cannot check which watched runs have ended", "error", err)
	}
	for _, id := range ended {
		watchers.Ended(id, nil)
	}
}
