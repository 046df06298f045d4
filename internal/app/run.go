package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/stepmill/stepmill/internal/dispatch/local"
	"github.com/stepmill/stepmill/internal/node"
)

const shutdownTime = 25 * time.Second

// Run serves until the context ends, then lets everything under way come to a
// good end: first requests, then runs, last the store.
func (s *Server) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, s.release()) }()
	defer s.serveMetrics()()
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	// A node shows that it is alive until all its runs are in good hands.
	life, endLife := context.WithCancel(context.WithoutCancel(ctx))
	defer endLife()
	parts, vital := newGroup(stopWork), newGroup(stopWork)
	if s.starts.safe {
		s.log.Warn("runs are not executed", "error", errSafeMode)
	} else if err := s.startWork(ctx, work, parts); err != nil {
		return err
	}
	if s.cluster != nil {
		vital.start(func() error { return s.cluster.member.Run(life) })
		vital.start(func() error { return s.cluster.bell.Run(life) })
		vital.start(func() error { return s.cluster.dispatch.PassOn(life) })
	}
	parts.start(func() error { return s.housekeep(work) })
	if s.role == node.RoleServe { // a worker does not know what is to be kept
		parts.start(func() error { return s.sweep(work) })
	}
	err = s.serve(ctx, work)
	stopWork()
	err = errors.Join(err, parts.wait(), s.leave(ctx))
	endLife()
	return errors.Join(err, vital.wait())
}

// startWork begins to execute runs and to send what there is to send.
func (s *Server) startWork(ctx, work context.Context, parts *group) error {
	if alone, ok := s.dispatch.(*local.Dispatcher); ok {
		if err := alone.Recover(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("take up the runs of the last process: %w", err)
		}
	}
	// From here on a run that ends the process is blamed for it.
	if err := s.starts.ready(); err != nil {
		s.log.Warn("cannot note that the service is ready", "error", err)
	}
	parts.start(func() error { return s.dispatch.Run(work) })
	parts.start(func() error { return s.engine.Run(work) })
	parts.start(func() error { return s.courier.Run(work) })
	parts.start(func() error { return s.schedule.Run(work) })
	parts.start(func() error { return s.respond.Run(work) })
	parts.start(func() error { return s.poll.Run(work) })
	return nil
}

// serve answers requests until it is told to stop, or cannot go on.
func (s *Server) serve(ctx, work context.Context) (err error) {
	if s.listener == nil {
		select {
		case <-ctx.Done():
			s.log.Info("stopping")
			s.stopping.Store(true)
		case <-work.Done(): // a part gave up
		case <-s.core.ended:
		}
		return nil
	}
	server := s.api.HTTP()
	serving := make(chan error, 1)
	go func() {
		serving <- server.Serve(s.listener)
	}()
	select {
	case <-ctx.Done():
		return s.stopServing(ctx, server)
	case err = <-serving:
	case <-work.Done(): // a part gave up
	case <-s.core.ended: // the disk failed: nothing may be acknowledged any more
		_ = server.Close()
	}
	return err
}

// leave hands the runs of this node to the others.
func (s *Server) leave(ctx context.Context) error {
	if s.cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err := s.cluster.member.Leave(ctx); err != nil {
		s.log.Warn("cannot hand the runs of this node to others; they take them when its time is over", "error", err)
	}
	return nil
}

func (s *Server) stopServing(ctx context.Context, server *http.Server) error {
	s.log.Info("stopping")
	s.stopping.Store(true)
	s.runs.Close()
	time.Sleep(s.config.DrainDelay)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		s.log.Warn("some requests did not end in time", "error", err)
		return server.Close()
	}
	return nil
}

// release gives back what NewServer took.
func (s *Server) release() error {
	var errs []error
	for _, listener := range s.listeners() {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.outside != nil {
		s.outside.Close()
	}
	if s.elsewhere != nil {
		s.elsewhere()
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
