package transport

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/openapi"
)

// muxOracle routes with http.ServeMux, which defines how paths and patterns match.
// The table's tree has to give the same results in one pass.
type muxOracle struct{ mux *http.ServeMux }

func newMuxOracle(t *RouteTable) muxOracle {
	o := muxOracle{http.NewServeMux()}
	for _, e := range t.endpoints {
		o.mux.HandleFunc(e.Method+" "+e.Path, recordRoute(e))
		if mountOf(e.Path) == mountKey {
			o.mux.HandleFunc(e.Method+" "+sessionPrefix+e.Path, recordRoute(e))
		}
	}
	return o
}

// documentedRoutes returns a table of the routes that the API's document describes, whose
// handlers do nothing.
func documentedRoutes(t testing.TB) *RouteTable {
	t.Helper()
	text, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	table := &RouteTable{}
	for path, operations := range document.Paths {
		for method := range operations {
			if method != "parameters" && !strings.Contains(path, "{token}") {
				pattern := strings.ToUpper(method) + " " + path
				HandleWrite(table, pattern, auth.Public, http.StatusOK, func(context.Context, txn.Tx, *struct{}) (*Reply, error) { return &Reply{}, nil })
			}
		}
	}
	return table
}

// routeRecorder receives the result of the mux.
type routeRecorder struct {
	http.ResponseWriter
	found match
}

func recordRoute(e *Endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		found := match{endpoint: e}
		for _, name := range e.parameters {
			found.values = append(found.values, r.PathValue(name))
		}
		w.(*routeRecorder).found = found
	}
}

// find returns what the table has to find.
func (o muxOracle) find(r *http.Request) match {
	if path.Clean(r.URL.Path) != r.URL.Path {
		return match{}
	}
	answer := httptest.NewRecorder()
	recorded := &routeRecorder{ResponseWriter: answer}
	o.mux.ServeHTTP(recorded, r)
	if allow := answer.Header().Get("Allow"); allow != "" {
		recorded.found.allowed = strings.Split(allow, ", ")
	}
	return recorded.found
}

func FuzzRoutes(f *testing.F) {
	for _, call := range []string{
		"GET /v1/workflows", "HEAD /ui/v1/workflows/wf_x", "PUT /v1/workflows/import", "GET /v1/workflows/import", "PATCH /v1/workflows/%69mport", "get /v1/runs",
		"GET /v1/runs/a%2Fb/steps/%2E", "GET /v1/runs/a%2fb", "POST /v1/runs/%2Fx/retry", "GET /v1/workflows/", "GET //v1/workflows", "GET /v1/a/../workflows", "OPTIONS /healthz",
		"GET /v1%2Fworkflows", "GET /%76%31/workflows", "DELETE /ui/v1/sessions/x", "PUT /ui/v1/invitations/look", "GET /v1/workflows/a/versions/1/diff", "GET /", "GET /v1/runs/%", "GET /v1/runs/{id}",
		"GET /v1/workflows/{$}", "GET /v1/runs/a;b", "GET /v1/runs/\x00", "CONNECT /v1/runs", "GET /v1/runs/%FF/steps/\xff/rounds",
	} {
		method, target, _ := strings.Cut(call, " ")
		f.Add(method, target)
	}
	table := documentedRoutes(f)
	oracle := newMuxOracle(table)
	f.Fuzz(func(t *testing.T, method, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(u.Path, "/") {
			return
		}
		got, want := table.root.find(&http.Request{Method: method, URL: u}), oracle.find(&http.Request{Method: method, URL: u})
		slices.Sort(got.allowed)
		if got.endpoint != want.endpoint || !slices.Equal(got.values, want.values) || !slices.Equal(got.allowed, want.allowed) {
			t.Errorf("%s %q: found %v, want %v", method, target, got, want)
		}
	})
}

func TestPathValues(t *testing.T) {
	t.Parallel()
	table := documentedRoutes(t)
	for target, want := range map[string]map[string]string{
		"/v1/workflows/a%2Fb/versions/%31":     {"id": "a/b", "n": "1"},
		"/ui/v1/workflows/%25/runs":            {"workflow_id": "%"},
		"/v1/runs/import/steps/steps/rounds":   {"id": "import", "step_id": "steps"},
		"/v1/runs/%C3%A9/steps/+":              {"id": "é", "step_id": "+"},
		"/v1/workflows/{id}/triggers/%7Bx%7D/": nil,
	} {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Fatal(err)
		}
		found := table.root.find(&http.Request{Method: http.MethodGet, URL: u})
		var got map[string]string
		if found.endpoint != nil {
			got = map[string]string{}
			for _, name := range found.endpoint.parameters {
				got[name] = found.value(name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", target, diff)
		}
	}
}

func TestTwoRoutesForOnePath(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a second route for the same path was accepted")
		}
	}()
	var root routeNode
	root.add("/v1/runs/{id}", &Endpoint{Route: Route{Method: http.MethodGet}})
	root.add("/v1/runs/{run_id}", &Endpoint{Route: Route{Method: http.MethodGet}})
}

// BenchmarkRequest measures a request without the work of its endpoint.
func BenchmarkRequest(b *testing.B) {
	handler := New(Services{}, Options{Log: slog.New(slog.DiscardHandler), PreauthPerMinute: 1}, documentedRoutes(b)).Handler()
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
