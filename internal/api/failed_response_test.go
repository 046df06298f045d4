package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stepmill/stepmill/internal/config"
)

// The response of a failed http.request is the output of the step, in the run,
// in the step and in a step test. Later steps can read it.
func TestFailedHTTPRequestOutput(t *testing.T) {
	t.Parallel()
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Seen", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"reason": "sold out", "token": "`+r.Header.Get("Authorization")+`"}`)
	}))
	t.Cleanup(shop.Close)
	s := newServer(t, func(c *config.Serve) {
		c.EgressAllow = []config.Network{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}
	})
	w := s.newTestWorkspace(t)
	w.call("PUT", "/v1/secrets/token", `{"value": "c4n4ry-v4lue"}`).wantStatus(201)
	w.workflow("wf",
		fmt.Sprintf(`{"id": "order", "on_error": "continue", "uses": "http.request",
			"with": {"url": %q, "headers": {"Authorization": "${{ secrets.token }}"}}}`, shop.URL),
		`{"id": "after", "uses": "data.set", "with": {"values": {"status": "${{ steps.order.output.status }}", "reason": "${{ steps.order.output.body.reason }}"}}}`)
	const output = `{"status": 422, "headers": {"x-seen": "***"}, "body": {"reason": "sold out", "token": "***"}}`
	holds := func(a *response, want string) {
		t.Helper()
		wantContains(t, a.wantStatus(200).json(), want)
	}
	holds(w.runToEnd("run", "wf", ""), `{"status": "succeeded", "steps": [
		{"step_id": "order", "status": "failed", "error": {"code": "http_error"}, "output": `+output+`},
		{"step_id": "after", "output": {"status": 422, "reason": "sold out"}}]}`)
	holds(w.call("GET", "/v1/runs/$run/steps/order", ""), `{"status": "failed", "output": `+output+`}`)
	holds(w.call("POST", "/v1/workflows/$wf/steps/order/test", `{}`), `{"status": "failed", "output": `+output+`}`)
	holds(w.call("POST", "/v1/expressions/evaluate", `{"expression": "steps.order.output.body.reason", "run_id": "$run"}`), `{"value": "sold out"}`)
}
