package telemetry

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/stepmill/stepmill/internal/fault"
)

const maxScrapes = 4

// Options configure what the listener serves in addition to the metrics.
type Options struct {
	// Ready returns nil if the service is ready, or the reason why it is not.
	Ready func(context.Context) error
	// Warnings returns what restricts a service that is ready.
	Warnings func() []string
	// Profiles adds the profiles of the Go runtime.
	Profiles bool
}

// HTTP returns the server of the listener. It needs no authentication, because it
// exposes no data of a workspace.
func (t *Telemetry) HTTP(o Options) *http.Server {
	log := slog.NewLogLogger(t.log.Handler(), slog.LevelDebug)
	return &http.Server{
		Handler:                      t.handler(o),
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  30 * time.Second,
		WriteTimeout:                 2 * time.Minute, // profiles are slow
		IdleTimeout:                  2 * time.Minute,
		MaxHeaderBytes:               32 << 10,
		ErrorLog:                     log,
	}
}

func (t *Telemetry) handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(t.log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: maxScrapes,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := o.Ready(r.Context()); err != nil {
			respond(w, http.StatusServiceUnavailable, map[string]any{
				"error": map[string]string{"code": string(fault.Unavailable), "message": "not ready: " + err.Error()},
			})
			return
		}
		respond(w, http.StatusOK, struct {
			Status   string   `json:"status"`
			Warnings []string `json:"warnings"`
		}{"ready", o.Warnings()})
	})
	if o.Profiles {
		// /debug/pprof/cmdline is omitted: the command line may contain the master key.
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		mux.ServeHTTP(w, r)
	})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}
