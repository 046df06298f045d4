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

// metricsConns is how many connections one address may open to the metrics.
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

// listenForMetrics opens the metrics listener if one is configured.
func (s *Server) listenForMetrics(ctx context.Context) (err error) {
	at := s.config.MetricsListen
	if at == "" {
		if s.config.MetricsPprof {
			return errors.New("--metrics-pprof needs --metrics-listen")
		}
		return nil
	}
	if s.telemetry, err = telemetry.New(s.log, s.collectNode, s.collectAPI, s.collectRuns, s.collectOutgoing, s.collectStore); err != nil {
		return err
	}
	if s.metrics, err = (&net.ListenConfig{}).Listen(ctx, "tcp", at); err != nil {
		return fmt.Errorf("listen for metrics on %s: %w", at, err)
	}
	return nil
}

// listeners returns the open listeners.
func (s *Server) listeners() []net.Listener {
	var open []net.Listener
	if s.listener != nil {
		open = append(open, s.listener)
	}
	if s.metrics != nil {
		open = append(open, s.metrics)
	}
	if s.commands != nil {
		open = append(open, s.commands)
	}
	return open
}

// ownAddresses returns the addresses that steps must not reach: those of this
// process, of the other nodes and of the shared database.
func (s *Server) ownAddresses() []netip.AddrPort {
	own := s.listenAddresses()
	if s.cluster != nil {
		own = slices.Concat(own, s.cluster.member.Others().Listens, s.core.pg.DialedAddrs())
	}
	return own
}

// listenAddresses returns the addresses of the listeners.
func (s *Server) listenAddresses() []netip.AddrPort {
	var at []netip.AddrPort
	for _, listener := range s.listeners() {
		if address, err := netip.ParseAddrPort(listener.Addr().String()); err == nil {
			at = append(at, address)
		}
	}
	return at
}

// maxReachable limits how many addresses a node announces to others.
const maxReachable = 100

// reachableAddresses returns the addresses at which others can reach the
// listeners. A listener on all interfaces is reachable at each local address.
func (s *Server) reachableAddresses() []netip.AddrPort {
	var at []netip.AddrPort
	for _, address := range s.listenAddresses() {
		if !address.Addr().IsUnspecified() {
			at = append(at, address)
			continue
		}
		local, _ := net.InterfaceAddrs() // without a list, none are announced
		for _, l := range local {
			if prefix, err := netip.ParsePrefix(l.String()); err == nil {
				at = append(at, netip.AddrPortFrom(prefix.Addr(), address.Port()))
			}
		}
	}
	return at[:min(len(at), maxReachable)]
}

// serveMetrics serves the metrics until stop is called.
func (s *Server) serveMetrics() (stop func()) {
	if s.metrics == nil {
		return func() {}
	}
	s.log.Info("metrics are served", "address", s.metrics.Addr().String())
	server := s.telemetry.HTTP(telemetry.Options{Ready: s.ready, Profiles: s.config.MetricsPprof})
	limited := api.LimitConns(s.metrics, metricsConns, nil)
	server.ConnState = limited.TrackState
	go func() {
		if err := server.Serve(limited); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the metrics server failed", "error", err)
		}
	}()
	return func() { _ = server.Close() } // a scrape in flight is retried by its client
}
