package api_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/api"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/blob/blobtest"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/usage"
	"github.com/stepmill/stepmill/internal/vault"
)

// peer is an API server that shares its store, and so its limits, with others.
type peer struct {
	handler http.Handler
	key     string
}

func (p peer) call(path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Header.Set("Authorization", "Bearer "+p.key)
	out := httptest.NewRecorder()
	p.handler.ServeHTTP(out, r)
	return out
}

// header returns a header by its documented name, which is not Go's canonical
// form.
func header(a *httptest.ResponseRecorder, name string) string {
	return strings.Join(a.Header()[name], ",")
}

// newPeers creates API servers on one store, with limits on the token store
// that the function returns.
func newPeers(t *testing.T, n int, tokens func(*store.DB) ratelimit.TokenStore) []peer {
	t.Helper()
	st := store.New(sqlitetest.Open(t), store.Notify{})
	v, err := vault.New([]byte(strings.Repeat("k", 32)), st.Workspaces)
	if err != nil {
		t.Fatal(err)
	}
	accounts := auth.NewService(st.Workspaces, v)
	first, err := accounts.Bootstrap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	operator, err := accounts.Authenticate(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := accounts.CreateWorkspace(t.Context(), operator, auth.NewWorkspace{Name: "Free", Plan: auth.Free})
	if err != nil {
		t.Fatal(err)
	}
	files := file.NewService(file.Config{
		Store: st.Files, Blobs: blobtest.NewMemory(), Keys: v, Capacity: file.Capacity{Writers: 1, Readers: 1, IO: 1}, Log: slog.New(slog.DiscardHandler),
	})
	var peers []peer
	for range n {
		limits := ratelimit.NewLeased(tokens(st), 3*time.Minute, func() time.Duration { return 0 })
		server := api.New(api.Services{Auth: auth.NewService(st.Workspaces, v), Usage: usage.NewService(st.Usage), Files: files},
			api.Options{Options: transport.Options{Limits: limits, PreauthPerMinute: 60, Log: slog.New(slog.DiscardHandler)}})
		peers = append(peers, peer{server.Handler(), key})
	}
	return peers
}

func TestNodesShareRateLimit(t *testing.T) {
	t.Parallel()
	var statuses map[int]int
	inOneMinute(func() {
		var (
			group sync.WaitGroup
			mu    sync.Mutex
		)
		statuses = map[int]int{}
		for _, n := range newPeers(t, 2, func(s *store.DB) ratelimit.TokenStore { return s.RateLimits }) {
			for range 8 {
				group.Go(func() {
					for range 10 {
						a := n.call("/v1/usage")
						mu.Lock()
						statuses[a.Code]++
						mu.Unlock()
						if a.Code == http.StatusTooManyRequests && (header(a, "X-RateLimit-Remaining") != "0" || a.Header().Get("Retry-After") == "") {
							t.Errorf("rejected with %v", a.Header())
						}
					}
				})
			}
		}
		group.Wait()
	})
	if len(statuses) != 2 || statuses[http.StatusOK] != 60 || statuses[http.StatusTooManyRequests] != 100 {
		t.Errorf("two nodes responded with %v, want 60 times 200 and 100 times 429", statuses)
	}
}

type failingTokenStore struct{}

func (failingTokenStore) TakeTokens(context.Context, string, time.Time, int, int) (granted, left int, err error) {
	return 0, 0, errors.New("the secret of the database")
}

func TestRateLimitStoreFailureRejects(t *testing.T) {
	t.Parallel()
	n := newPeers(t, 1, func(*store.DB) ratelimit.TokenStore { return failingTokenStore{} })[0]
	a := n.call("/v1/usage")
	if a.Code != http.StatusServiceUnavailable || a.Header().Get("Retry-After") != "1" || header(a, "X-RateLimit-Limit") != "60" {
		t.Errorf("got %d with %v", a.Code, a.Header())
	}
	if body := a.Body.String(); !strings.Contains(body, `"unavailable"`) || strings.Contains(body, "secret") {
		t.Errorf("got %s", body)
	}
	if a := n.call("/healthz"); a.Code != http.StatusOK {
		t.Errorf("a public route responded with %d", a.Code)
	}
}
