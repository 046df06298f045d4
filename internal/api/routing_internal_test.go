package api

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkRequest measures a request without the work of its endpoint.
func BenchmarkRequest(b *testing.B) {
	handler := New(Services{}, Options{Log: slog.New(slog.DiscardHandler), PreauthPerMinute: 1}).Handler()
	for _, call := range [][2]string{{http.MethodGet, "/healthz"}, {http.MethodGet, "/v1/schemas/workflow.json"}, {http.MethodDelete, "/healthz"}, {http.MethodGet, "/nothing.txt"}} {
		b.Run(call[0]+" "+call[1], func(b *testing.B) {
			request := httptest.NewRequestWithContext(b.Context(), call[0], call[1], http.NoBody)
			b.ReportAllocs()
			for b.Loop() {
				handler.ServeHTTP(httptest.NewRecorder(), request)
			}
		})
	}
}
