package transport

import (
	"log/slog"
	"net/http"
	"time"
)

func (s *Server) logRequest(r *http.Request, out *recorder, c *Caller, took time.Duration) {
	level := slog.LevelInfo
	status, bytes := out.written()
	if (r.URL.Path == HealthPath || r.URL.Path == ReadyPath || c.dashboard) && status < http.StatusBadRequest {
		level = slog.LevelDebug // health checks come every few seconds, and a page loads many files
	}
	s.Log.LogAttrs(r.Context(), level, "request",
		slog.String("request_id", c.RequestID), slog.String("method", Clean(r.Method)), slog.String("path", s.loggedPath(r.URL.Path)),
		slog.Int("status", status), slog.Int("bytes", bytes), slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.String("workspace_id", c.Actor.Workspace.ID), slog.String(c.mount.actorLogKey(), c.Actor.ID), slog.String("address", s.clientAddress(r).String()))
}
