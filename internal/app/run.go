package app

import (
	"context"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/node"
)

// Run serves until the context ends, then shuts down gracefully: first requests,
// then runs, then the lease of this node, last the store.
func (s *Server) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, s.close()) }()
	defer s.front.serveMetrics(s.ready, s.disk.messages)()
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	// A node sends heartbeats until it has handed over all its runs.
	joined, stopJoined := context.WithCancel(context.WithoutCancel(ctx))
	defer stopJoined()
	parts, topology := newGroup(stopWork), newGroup(stopWork)
	parts.start(func() error { return s.housekeeper.settleClock(work) })
	if s.data.starts.safe {
		s.log.Warn("the service does not execute runs", "error", errSafeMode)
	} else if err := s.runner.start(ctx, work, parts); err != nil {
		return err
	}
	topology.start(func() error { return s.topology.Run(joined) })
	parts.start(func() error { return s.data.db.watchDisk(work, &s.disk) })
	parts.start(func() error { return s.housekeeper.flushPeriodically(work) })
	parts.start(func() error { return s.housekeeper.checkConsents(work) })
	if s.role == node.RoleServe { // a worker does not have the retention settings
		parts.start(func() error { return s.housekeeper.sweep(work) })
	}
	if s.front.api != nil {
		parts.start(func() error { return s.front.api.GuardStorage(work) })
	}
	if s.commands.listener != nil {
		parts.start(func() error { s.serveCommands(work); return nil })
	}
	err = s.front.serve(ctx, work, s.data.ended, s.runner.runs.Close)
	stopWork()
	err = errors.Join(err, parts.wait())
	s.awaitRenewals(ctx)
	s.topology.Leave(ctx)
	stopJoined()
	return errors.Join(err, topology.wait())
}

// renewalPatience is how long a process that stops waits for tokens that are being
// renewed.
const renewalPatience = 10 * time.Second

func (s *Server) awaitRenewals(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewalPatience)
	defer cancel()
	s.housekeeper.connections.Shutdown(ctx)
}

// close releases the resources that NewServer acquired, the data last. Parts that
// were not built are skipped.
func (s *Server) close() error {
	err := errors.Join(s.front.close(), s.commands.close())
	s.runner.close()
	if s.topology != nil {
		s.topology.Close()
	}
	return errors.Join(err, s.data.close())
}
