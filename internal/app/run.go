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
	memberCtx, stopMember := context.WithCancel(context.WithoutCancel(ctx))
	defer stopMember()
	parts, memberParts := newGroup(stopWork), newGroup(stopWork)
	if s.cluster == nil {
		s.checkClock(ctx, true)
		parts.start(func() error { return s.watchClock(work) })
	}
	parts.start(func() error { return s.housekeeper.settleClock(work) })
	if s.data.starts.safe {
		s.log.Warn("the service does not execute runs", "error", errSafeMode)
	} else if err := s.runner.start(ctx, work, parts); err != nil {
		return err
	}
	if s.cluster != nil {
		memberParts.start(func() error { return s.cluster.keeper.Run(memberCtx) })
		memberParts.start(func() error { return s.cluster.notifier.Run(memberCtx) })
		memberParts.start(func() error { return s.cluster.dispatch.AdmitThrottled(memberCtx) })
	}
	parts.start(func() error { return s.disk.watch(work) })
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
	err = errors.Join(err, s.leave(ctx))
	stopMember()
	return errors.Join(err, memberParts.wait())
}

// renewalPatience is how long a process that stops waits for tokens that are being
// renewed.
const renewalPatience = 10 * time.Second

func (s *Server) awaitRenewals(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewalPatience)
	defer cancel()
	s.housekeeper.connections.AwaitRenewals(ctx)
}

// leave hands the runs of this node to the other nodes.
func (s *Server) leave(ctx context.Context) error {
	if s.cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := s.cluster.keeper.Leave(ctx); err != nil {
		s.log.Warn("cannot hand the runs of this node to other nodes; they take over when its lease expires", "error", err)
	}
	return nil
}

// close releases the resources that NewServer acquired, the data last. Parts that
// were not built are skipped.
func (s *Server) close() error {
	err := errors.Join(s.front.close(), s.commands.close())
	s.runner.close()
	if s.cluster != nil {
		s.cluster.close()
	}
	return errors.Join(err, s.data.close())
}
