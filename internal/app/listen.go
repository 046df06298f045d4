package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"

	"github.com/stepmill/stepmill/internal/api"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/telemetry"
)

// metricsConns is how many connections one address may have to the metrics.
const metricsConns = 32

// listen opens the listeners.
func (s *Server) listen(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.config.Listen, err)
	}
	s.listener = api.LimitConns(listener, s.config.ConnsPerAddress, config.Prefixes(s.config.TrustedProxy))
	return s.listenForMetrics(ctx)
}

// listenForMetrics opens the listener of the metrics, if there is to be one.
func (s *Server) listenForMetrics(ctx context.Context) (err error) {
	at := s.config.MetricsListen
	if at == "" {
		if s.config.MetricsPprof {
			return errors.New("--metrics-pprof needs --metrics-listen")
		}
		return nil
	}
	if s.telemetry, err = telemetry.New(s.log, s.tellNode, s.tellAPI, s.tellRuns, s.tellOutside, s.tellStore); err != nil {
		return err
	}
	if s.metrics, err = (&net.ListenConfig{}).Listen(ctx, "tcp", at); err != nil {
		return fmt.Errorf("listen for metrics on %s: %w", at, err)
	}
	return nil
}

// listeners are those that are open.
func (s *Server) listeners() []net.Listener {
	var open []net.Listener
	if s.listener != nil {
		open = append(open, s.listener)
	}
	if s.metrics != nil {
		open = append(open, s.metrics)
	}
	return open
}

// own are the addresses that no step may reach: those of this process, of the
// nodes that it shares a database with, and of that database.
func (s *Server) own() []netip.AddrPort {
	own := s.listening()
	if s.cluster != nil {
		own = slices.Concat(own, s.cluster.member.Others().Listens, s.core.pg.Dialled())
	}
	return own
}

// listening are the addresses of the listeners.
func (s *Server) listening() []netip.AddrPort {
	var at []netip.AddrPort
	for _, listener := range s.listeners() {
		if address, err := netip.ParseAddrPort(listener.Addr().String()); err == nil {
			at = append(at, address)
		}
	}
	return at
}

// mostReachable bounds how many addresses a node tells others that it has.
const mostReachable = 100

// reachable are the addresses at which others may reach the listeners: one on all
// addresses of this machine is reached at each of them.
func (s *Server) reachable() []netip.AddrPort {
	var at []netip.AddrPort
	for _, address := range s.listening() {
		if !address.Addr().IsUnspecified() {
			at = append(at, address)
			continue
		}
		local, _ := net.InterfaceAddrs() // where they cannot be listed, others know of none
		for _, l := range local {
			if prefix, err := netip.ParsePrefix(l.String()); err == nil {
				at = append(at, netip.AddrPortFrom(prefix.Addr(), address.Port()))
			}
		}
	}
	return at[:min(len(at), mostReachable)]
}

// serveMetrics shows the metrics until stop is called.
func (s *Server) serveMetrics() (stop func()) {
	if s.metrics == nil {
		return func() {}
	}
	s.log.Info("metrics are served", "address", s.metrics.Addr().String())
	server := s.telemetry.HTTP(telemetry.Options{Ready: s.ready, Profiles: s.config.MetricsPprof})
	go func() {
		limited := api.LimitConns(s.metrics, metricsConns, nil)
		if err := server.Serve(limited); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("metrics are not served any more", "error", err)
		}
	}()
	return func() { _ = server.Close() } // who looks at this moment looks again
}
