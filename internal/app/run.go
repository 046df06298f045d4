package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/stepmill/stepmill/internal/dispatch/local"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/node"
)

const shutdownTimeout = 25 * time.Second

// Run serves until the context ends, then shuts down gracefully: first requests,
// then runs, last the store.
func (s *Server) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, s.release()) }()
	defer s.serveMetrics()()
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	// A node sends heartbeats until it has handed over all its runs.
	memberCtx, stopMember := context.WithCancel(context.WithoutCancel(ctx))
	defer stopMember()
	parts, memberParts := newGroup(stopWork), newGroup(stopWork)
	if s.starts.safe {
		s.log.Warn("the service does not execute runs", "error", errSafeMode)
	} else if err := s.startWork(ctx, work, parts); err != nil {
		return err
	}
	if s.cluster != nil {
		memberParts.start(func() error { return s.cluster.member.Run(memberCtx) })
		memberParts.start(func() error { return s.cluster.notifier.Run(memberCtx) })
		memberParts.start(func() error { return s.cluster.dispatch.AdmitThrottled(memberCtx) })
	}
	parts.start(func() error { return s.housekeep(work) })
	if s.role == node.RoleServe { // a worker does not have the retention settings
		parts.start(func() error { return s.sweep(work) })
	}
	if s.api != nil {
		parts.start(func() error { return s.api.GuardStorage(work) })
	}
	if s.commands != nil {
		parts.start(func() error { s.serveCommands(work); return nil })
	}
	err = s.serve(ctx, work)
	stopWork()
	err = errors.Join(err, parts.wait(), s.leave(ctx))
	stopMember()
	return errors.Join(err, memberParts.wait())
}

// startWork starts executing runs, sending webhooks and firing triggers. On a full
// disk it returns nil and starts them when there is space.
func (s *Server) startWork(ctx, work context.Context, parts *group) error {
	s.countWorkspaces(ctx)
	err := s.recoverRuns(ctx)
	if fault.Is(err, fault.StorageFull) {
		s.awaitsSpace.Store(true)
		s.log.Warn("the service does not execute runs", "error", errAwaitsSpace)
		parts.start(func() error { return s.awaitSpace(work, parts) })
		return nil
	}
	if err == nil {
		s.execute(work, parts)
	}
	return err
}

var errAwaitsSpace = errors.New("the disk is full: reads are served, nothing can be changed, and runs continue when there is space")

// spaceCheckEvery is the interval at which a server that was started on a full
// disk looks for space.
const spaceCheckEvery = 2 * time.Second

func (s *Server) awaitSpace(work context.Context, parts *group) error {
	for {
		select {
		case <-work.Done():
			return nil
		case <-time.After(spaceCheckEvery):
		}
		err := s.recoverRuns(work)
		if fault.Is(err, fault.StorageFull) || work.Err() != nil {
			continue
		}
		if err == nil {
			s.log.Info("the disk has space again: executing runs")
			s.execute(work, parts)
			s.awaitsSpace.Store(false)
		}
		return err
	}
}

// recoverRuns queues the runs of the previous process.
func (s *Server) recoverRuns(ctx context.Context) error {
	alone, ok := s.dispatch.(*local.Dispatcher)
	if !ok {
		return nil
	}
	if err := alone.Recover(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("resume the runs of the previous process: %w", err)
	}
	return nil
}

// execute starts the parts that work on runs.
func (s *Server) execute(work context.Context, parts *group) {
	// From here on, a run that crashes the process is blamed for it.
	if err := s.starts.ready(); err != nil {
		s.log.Warn("cannot record that the service is ready", "error", err)
	}
	parts.start(func() error { return s.dispatch.Run(work) })
	parts.start(func() error { return s.engine.Run(work) })
	parts.start(func() error { return s.sender.Run(work) })
	for _, firer := range s.firers.All() {
		parts.start(func() error { return firer.Run(work) })
	}
}

// serve handles requests until the server is stopped or a part fails.
func (s *Server) serve(ctx, work context.Context) (err error) {
	if s.listener == nil {
		select {
		case <-ctx.Done():
			s.log.Info("stopping")
			s.stopping.Store(true)
		case <-work.Done(): // a part failed
		case <-s.core.ended:
		}
		return nil
	}
	server := s.api.HTTP()
	server.ConnState = s.listener.TrackState
	serving := make(chan error, 1)
	go func() {
		serving <- server.Serve(s.listener)
	}()
	select {
	case <-ctx.Done():
		return s.stopServing(ctx, server)
	case err = <-serving:
	case <-work.Done(): // a part failed
	case <-s.core.ended: // the database failed: nothing may be acknowledged any more
		_ = server.Close()
	}
	return err
}

// leave hands the runs of this node to the other nodes.
func (s *Server) leave(ctx context.Context) error {
	if s.cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := s.cluster.member.Leave(ctx); err != nil {
		s.log.Warn("cannot hand the runs of this node to other nodes; they take over when its lease expires", "error", err)
	}
	return nil
}

func (s *Server) stopServing(ctx context.Context, server *http.Server) error {
	s.log.Info("stopping")
	s.stopping.Store(true)
	s.runs.Close()
	time.Sleep(s.config.DrainDelay)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		s.log.Warn("some requests did not finish before the shutdown timeout", "error", err)
		return server.Close()
	}
	return nil
}

// release releases the resources that NewServer acquired.
func (s *Server) release() error {
	var errs []error
	for _, listener := range s.listeners() {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.egress != nil {
		s.egress.Close()
	}
	if s.closeOIDC != nil {
		s.closeOIDC()
	}
	if s.scripts != nil {
		s.scripts.Close()
	}
	if s.cluster != nil {
		s.cluster.close()
	}
	if s.core != nil {
		errs = append(errs, s.core.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}
