package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/descriptor"
	"github.com/stepmill/stepmill/internal/telemetry"
	"github.com/stepmill/stepmill/internal/transport"
)

// shutdownTimeout is how long requests in flight may take to finish. Steps in flight get as long
// after that: both fit into the minute that docs/operations.md tells service managers to wait.
const shutdownTimeout = 25 * time.Second

// front is what clients reach: the listeners of the API and of the metrics.
type front struct {
	config config.Serve
	log    *slog.Logger

	listener  *transport.LimitListener // nil: a worker
	api       *transport.Server
	closeOIDC func()       // closes connections to the identity provider
	metrics   net.Listener // nil: not served
	telemetry *telemetry.Telemetry
	stopping  atomic.Bool
}

// metricsConns is how many connections one address may open to the metrics.
const metricsConns = 32

func (f *front) listen(ctx context.Context, sources ...telemetry.Source) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.config.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", f.config.Listen, err)
	}
	f.listener = transport.LimitConns(listener, f.config.ConnsPerAddress, config.Prefixes(f.config.TrustedProxy), func() {
		f.log.Error("the process has too few file descriptors: it answers health checks, and rejects other requests. Raise its limit, such as with ulimit -n or LimitNOFILE", "limit", descriptor.Limit())
	})
	return f.listenForMetrics(ctx, sources...)
}

func (f *front) listenForMetrics(ctx context.Context, sources ...telemetry.Source) (err error) {
	at := f.config.MetricsListen
	if at == "" {
		if f.config.MetricsPprof {
			return errors.New("--metrics-pprof needs --metrics-listen")
		}
		return nil
	}
	if f.telemetry, err = telemetry.New(f.log, sources...); err != nil {
		return err
	}
	if f.metrics, err = (&net.ListenConfig{}).Listen(ctx, "tcp", at); err != nil {
		return fmt.Errorf("listen for metrics on %s: %w", at, err)
	}
	return nil
}

func (f *front) listeners() []net.Listener {
	var open []net.Listener
	if f.listener != nil {
		open = append(open, f.listener)
	}
	if f.metrics != nil {
		open = append(open, f.metrics)
	}
	return open
}

func (f *front) listenAddresses() []netip.AddrPort {
	var at []netip.AddrPort
	for _, listener := range f.listeners() {
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
func (f *front) reachableAddresses() []netip.AddrPort {
	var at []netip.AddrPort
	for _, address := range f.listenAddresses() {
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
func (f *front) serveMetrics(ready func(context.Context) error, warnings func() []string) (stop func()) {
	if f.metrics == nil {
		return func() {}
	}
	f.log.Info("metrics are served", "address", f.metrics.Addr().String())
	server := f.telemetry.HTTP(telemetry.Options{Ready: ready, Warnings: warnings, Profiles: f.config.MetricsPprof})
	limited := transport.LimitConns(f.metrics, metricsConns, nil, nil)
	server.ConnState = limited.TrackState
	go func() {
		if err := server.Serve(limited); err != nil && !errors.Is(err, http.ErrServerClosed) {
			f.log.Error("the metrics server failed", "error", err)
		}
	}()
	return func() { _ = server.Close() } // a scrape in flight is retried by its client
}

// serve handles requests until the context ends, a part has failed and cancelled
// work, or the database has failed. A worker only waits for that. stopWaiting is
// called before the server waits for requests in flight.
func (f *front) serve(ctx, work context.Context, databaseEnded <-chan struct{}, stopWaiting func()) (err error) {
	if f.listener == nil {
		select {
		case <-ctx.Done():
			f.log.Info("stopping")
			f.stopping.Store(true)
		case <-work.Done(): // a part failed
		case <-databaseEnded:
		}
		return nil
	}
	server := f.api.HTTP()
	server.ConnState, server.ConnContext = f.listener.TrackState, f.listener.MarkSpare
	serving := make(chan error, 1)
	go func() {
		serving <- server.Serve(f.listener)
	}()
	select {
	case <-ctx.Done():
		return f.stopServing(ctx, server, stopWaiting)
	case err = <-serving:
	case <-work.Done(): // a part failed
	case <-databaseEnded: // the database failed: nothing may be acknowledged any more
		_ = server.Close()
	}
	return err
}

func (f *front) stopServing(ctx context.Context, server *http.Server, stopWaiting func()) error {
	f.log.Info("stopping")
	f.stopping.Store(true)
	stopWaiting()
	time.Sleep(f.config.DrainDelay)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		f.log.Warn("some requests did not finish before the shutdown timeout", "error", err)
		return server.Close()
	}
	return nil
}

func (f *front) close() error {
	var errs []error
	for _, listener := range f.listeners() {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if f.closeOIDC != nil {
		f.closeOIDC()
	}
	return errors.Join(errs...)
}
