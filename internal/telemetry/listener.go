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

// atOnce is how many may look at the metrics at the same time.
const atOnce = 4

// Options say what the listener shows beside the metrics.
type Options struct {
	// Ready tells whether the service can work; an error says why not.
	Ready func(context.Context) error
	// Profiles adds the profiles of the Go runtime.
	Profiles bool
}

// HTTP makes the server of the listener. It asks for no key: who can reach it
// may look, and there is nothing of a workspace to see.
func (t *Telemetry) HTTP(o Options) *http.Server {
	log := slog.NewLogLogger(t.log.Handler(), slog.LevelDebug)
	return &http.Server{
		Handler:                      t.handler(o),
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  30 * time.Second,
		WriteTimeout:                 2 * time.Minute, // a profile takes its time
		IdleTimeout:                  2 * time.Minute,
		MaxHeaderBytes:               32 << 10,
		ErrorLog:                     log,
	}
}

func (t *Telemetry) handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(t.log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: atOnce,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := o.Ready(r.Context()); err != nil {
			answer(w, http.StatusServiceUnavailable, map[string]any{
				"error": map[string]string{"code": string(fault.Unavailable), "message": "not ready: " + err.Error()},
			})
			return
		}
		answer(w, http.StatusOK, map[string]string{"status": "ready"})
	})
	if o.Profiles {
		// Without the command line: it may hold the master key.
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

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that went away is no failure of ours
}
