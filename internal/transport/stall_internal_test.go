package transport

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
)

// A request is abandoned if the storage is found stalled twice in a row before its
// response starts.
func TestStalledStorage(t *testing.T) {
	for _, test := range []struct {
		name  string
		stall time.Duration // from the start of the request
		want  int
	}{
		{"none", 0, http.StatusOK},
		{"short", stallCheck + stallCheck/2, http.StatusOK},
		{"long", time.Hour, http.StatusServiceUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var stalled atomic.Bool
				s := New(Services{}, Options{Log: slog.New(slog.DiscardHandler), StorageStalled: stalled.Load}, &RouteTable{})
				proceed, finished := make(chan struct{}), make(chan struct{})
				Handle(s.routes, "GET /v1/waiting", auth.Public, http.StatusOK, func(context.Context, *struct{}) (*Reply, error) {
					<-proceed
					close(finished)
					return OK(map[string]any{"by": "the handler"}), nil
				})
				stalled.Store(test.stall > 0)
				time.AfterFunc(test.stall, func() { stalled.Store(false) })
				response := httptest.NewRecorder()
				served := make(chan struct{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { _ = s.GuardStorage(ctx) }()
				go func() {
					defer close(served)
					s.serve(response, httptest.NewRequest(http.MethodGet, "/v1/waiting", nil))
				}()
				time.Sleep(StallDelay + stallCheck/2)
				close(proceed)
				<-served
				<-finished
				synctest.Wait()
				if response.Code != test.want {
					t.Errorf("status %d, want %d: %s", response.Code, test.want, response.Body)
				}
				if by := strings.Contains(response.Body.String(), "the handler"); by != (test.want == http.StatusOK) {
					t.Errorf("body %s", response.Body)
				}
				if response.Header().Get("X-Request-Id") == "" || response.Header().Get("Content-Security-Policy") == "" {
					t.Errorf("headers are missing: %v", response.Header())
				}
			})
		})
	}
}

// A response that has been started is never abandoned.
func TestStalledStorageAfterTheStart(t *testing.T) {
	out := &recorder{ResponseWriter: httptest.NewRecorder(), header: http.Header{}}
	out.Header().Set("X-Test", "1")
	out.WriteHeader(http.StatusAccepted)
	if out.abandon(func(http.ResponseWriter) { t.Error("a second response was written") }) {
		t.Error("the response was abandoned")
	}
	if out.ResponseWriter.Header().Get("X-Test") != "1" {
		t.Error("the header was not sent")
	}
}

// After a request was abandoned, its handler cannot reach the connection.
func TestHandlerOfAnAbandonedRequest(t *testing.T) {
	to := httptest.NewRecorder()
	out := &recorder{ResponseWriter: to, header: http.Header{}}
	if !out.abandon(func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }) {
		t.Fatal("the request was not abandoned")
	}
	out.Header().Set("X-Late", "1")
	out.WriteHeader(http.StatusOK)
	if _, err := out.Write([]byte("late")); err == nil {
		t.Error("a late write succeeded")
	}
	if http.NewResponseController(out).Flush() == nil || http.NewResponseController(out).SetWriteDeadline(time.Time{}) == nil {
		t.Error("the handler reached the connection")
	}
	if to.Code != http.StatusServiceUnavailable || to.Body.Len() > 0 || to.Header().Get("X-Late") != "" {
		t.Errorf("status %d, body %q, header %v", to.Code, to.Body, to.Header())
	}
}
