package connections_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/installation"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/oauthserver"
)

// startNodes starts nodes on one PostgreSQL database, and makes the first owner.
func startNodes(t *testing.T, n int) ([]*harness.Server, owner) {
	t.Helper()
	installed := installation.New(t)
	nodes := make([]*harness.Server, n)
	for i := range nodes {
		nodes[i] = harness.StartWith(t, harness.Options{
			Dir: installed.Dir, Database: installed.URL,
			Args: []string{allowLoopback, "--node-lease", "1m", "--database-timeout", harness.Timeout.String()},
		})
		nodes[i].Key = installed.AdminKey
	}
	return nodes, signUp(t, nodes[0], nodes[0].AwaitSetupToken(t))
}

// startOnAll starts runs on each node.
func startOnAll(t *testing.T, nodes []*harness.Server, workflow string, each int) (ids []string) {
	t.Helper()
	for _, node := range nodes {
		ids = append(ids, startRuns(t, node.Client, workflow, each)...)
	}
	return ids
}

type connectionDetail struct {
	Status    string
	Problem   *string
	Hosts     []string
	ExpiresAt *time.Time `json:"expires_at"`
}

func show(t *testing.T, s *harness.Server, id string) (c connectionDetail) {
	t.Helper()
	s.Expect(t, http.StatusOK, "GET", "/v1/connections/"+id, nil).Decode(t, &c)
	return c
}

// createClient makes a connection with client credentials and returns its id.
func createClient(t *testing.T, s *harness.Server, oauth *oauthserver.Server) string {
	t.Helper()
	var made struct{ ID string }
	s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
		"name": name, "auth": "oauth2", "fields": map[string]string{"client_id": oauthserver.ClientID, "client_secret": oauthserver.ClientSecret},
		"definition": map[string]any{"hosts": []string{oauth.URL}, "token_url": oauth.URL + "/token"},
	}).Decode(t, &made)
	return made.ID
}

// awaitWaiting waits until all runs wait for something of a kind.
func awaitWaiting(t *testing.T, s *harness.Server, ids []string, kind string) {
	t.Helper()
	for _, id := range ids {
		harness.Eventually(t, "the run "+id+" waits for a "+kind, func() bool {
			d := get(t, s.Client, id)
			if d.Error != nil {
				t.Fatalf("%s failed: %+v", id, *d.Error)
			}
			return d.WaitingFor != nil && d.WaitingFor.Kind == kind
		})
	}
}

// TestOneRenewalOnThreeNodes checks that a token that has expired, or that the service
// no longer accepts, is renewed once for all steps on all nodes.
func TestOneRenewalOnThreeNodes(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	for _, how := range []string{"rejected", "expired"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			oauth := oauthserver.Start(t)
			nodes, _ := startNodes(t, 3)
			id := createClient(t, nodes[0], oauth)
			workflow := define(t, nodes[0].Client, oauth)
			if how == "expired" {
				oauth.Set(func(now *oauthserver.Settings) { now.Life = time.Second })
			}
			nodes[0].Expect(t, http.StatusOK, "POST", "/v1/connections/"+id+"/test", nil)
			if how == "expired" {
				expires := *show(t, nodes[0], id).ExpiresAt
				harness.Eventually(t, "the token expires", func() bool { return time.Now().After(expires) })
			}
			before := oauth.Requests("client_credentials")
			oauth.ExpireAll()
			oauth.Set(func(now *oauthserver.Settings) { now.Delay, now.Life = 500*time.Millisecond, time.Hour })
			ids := startOnAll(t, nodes, workflow, 17)
			awaitSuccess(t, nodes[0].Client, ids)
			wantOnce(t, oauth, ids)
			if n := oauth.Requests("client_credentials") - before; n != 1 {
				t.Errorf("the token was renewed %d times", n)
			}
		})
	}
}

// TestPassingErrorsOnSeveralNodes checks that errors of a token endpoint that pass break
// a connection on no node, and that steps on all nodes continue.
func TestPassingErrorsOnSeveralNodes(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	oauth := oauthserver.Start(t)
	nodes, person := startNodes(t, 2)
	id := person.connect(t, oauth)
	retry := map[string]any{"max_attempts": 20, "initial": "200ms", "factor": 1}
	workflow := flow.Define(t, nodes[0].Client, flow.HTTP("call", oauth.URL+"/resource", "connection", name, "retry", retry))
	for _, tc := range []struct {
		status      int
		media, body string
	}{
		{http.StatusBadRequest, "text/html", "<html>bad request</html>"},
		{http.StatusUnauthorized, "text/html", "<html>sign in</html>"},
		{http.StatusForbidden, "text/html", "<html>blocked</html>"},
		{http.StatusNotFound, "application/json", `{"message": "no Route matched with those values"}`},
		{http.StatusOK, "application/json", `{"ok": false, "error": "ratelimited"}`},
	} {
		oauth.Set(func(now *oauthserver.Settings) {
			now.Respond = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.media)
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			}
		})
		oauth.ExpireAll()
		before := oauth.Requests("refresh_token")
		ids := startOnAll(t, nodes, workflow, 5)
		awaitWaiting(t, nodes[0], ids, "retry")
		if oauth.Requests("refresh_token") == before {
			t.Errorf("%d %s: no token was requested", tc.status, tc.body)
		}
		for _, node := range nodes {
			if c := show(t, node, id); c.Status == "needs_reconnect" {
				t.Errorf("%d %s: %+v", tc.status, tc.body, c)
			}
		}
		oauth.Set(func(now *oauthserver.Settings) { now.Respond = nil })
		awaitSuccess(t, nodes[1].Client, ids)
		wantOnce(t, oauth, ids)
		for _, node := range nodes {
			if c := show(t, node, id); c.Status != "connected" {
				t.Errorf("%d %s: it does not recover: %+v", tc.status, tc.body, c)
			}
		}
	}
}

// TestRefusalOnSeveralNodes checks that steps on all nodes wait for a connection that one
// of them found to be broken, and continue after a repair through any node: by consent,
// by a test after the service changed its mind, or with the right client secret.
func TestRefusalOnSeveralNodes(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	oauth, clients := oauthserver.Start(t), oauthserver.Start(t)
	nodes, person := startNodes(t, 2)
	for _, tc := range []struct {
		name   string
		grant  string
		oauth  *oauthserver.Server
		make   func() string
		revoke func()
		repair func(id string)
	}{
		{
			"consent", "refresh_token", oauth, func() string { return person.connect(t, oauth) },
			oauth.RevokeAll,
			func(id string) { person.at(nodes[1]).reconnect(t, oauth, id) },
		},
		{
			"test", "refresh_token", oauth, func() string { return person.connect(t, oauth) },
			func() {
				oauth.ExpireAll()
				oauth.Set(func(now *oauthserver.Settings) { now.Fails = "invalid_grant" })
			},
			func(id string) {
				oauth.Set(func(now *oauthserver.Settings) { now.Fails = "" })
				nodes[1].Expect(t, http.StatusOK, "POST", "/v1/connections/"+id+"/test", nil)
			},
		},
		{
			"client secret", "client_credentials", clients, func() string { return createClient(t, nodes[0], clients) },
			func() {
				clients.ExpireAll()
				clients.Set(func(now *oauthserver.Settings) { now.Secret = "the-next-secret-of-the-client" })
			},
			func(id string) {
				nodes[1].Expect(t, http.StatusOK, "PATCH", "/v1/connections/"+id, map[string]any{"fields": map[string]string{"client_secret": "the-next-secret-of-the-client"}})
			},
		},
	} {
		id := tc.make()
		workflow := define(t, nodes[0].Client, tc.oauth)
		ids := startOnAll(t, nodes, workflow, 1)
		awaitSuccess(t, nodes[0].Client, ids)
		before := tc.oauth.Requests(tc.grant)
		tc.revoke()
		ids = startOnAll(t, nodes, workflow, 10)
		awaitWaiting(t, nodes[0], ids, "connection")
		for _, node := range nodes {
			if c := show(t, node, id); c.Status != "needs_reconnect" {
				t.Errorf("%s: %+v", tc.name, c)
			}
		}
		if n := tc.oauth.Requests(tc.grant) - before; n != 1 {
			t.Errorf("%s: %d tokens were requested of a service that had refused", tc.name, n)
		}
		tc.repair(id)
		awaitSuccess(t, nodes[0].Client, ids)
		wantOnce(t, tc.oauth, ids)
		nodes[0].Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{"state": "paused"})
		nodes[0].Expect(t, http.StatusNoContent, "DELETE", "/v1/connections/"+id, nil)
	}
}

// TestNewClientSecretOnAnotherNode checks that a node renews a token with the secret of
// the client that was entered on another node.
func TestNewClientSecretOnAnotherNode(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	oauth := oauthserver.Start(t)
	oauth.Set(func(now *oauthserver.Settings) { now.Life = time.Second })
	nodes, person := startNodes(t, 2)
	id := person.connect(t, oauth)
	workflow := define(t, nodes[0].Client, oauth)
	for i, end := range []func(){
		func() {
			expires := *show(t, nodes[1], id).ExpiresAt
			harness.Eventually(t, "the token expires", func() bool { return time.Now().After(expires) })
		},
		oauth.ExpireAll,
	} {
		secret := fmt.Sprintf("secret-%d-of-the-client", i)
		oauth.Set(func(now *oauthserver.Settings) { now.Secret, now.Life = secret, time.Hour })
		nodes[0].Expect(t, http.StatusOK, "PATCH", "/v1/connections/"+id, map[string]any{"fields": map[string]string{"client_secret": secret}})
		end()
		before := oauth.Requests("refresh_token")
		ids := startRuns(t, nodes[1].Client, workflow, 5)
		awaitSuccess(t, nodes[1].Client, ids)
		wantOnce(t, oauth, ids)
		if c, n := show(t, nodes[0], id), oauth.Requests("refresh_token")-before; c.Status != "connected" || n != 1 {
			t.Errorf("%+v after %d renewals", c, n)
		}
	}
}

// bearers is a service that records the bearer tokens that it gets.
type bearers struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string][]string // by idempotency key
}

func newBearers(t *testing.T) *bearers {
	b := &bearers{seen: map[string][]string{}}
	b.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		b.seen[key] = append(b.seen[key], strings.Join(r.Header["Authorization"], ", "))
	}))
	t.Cleanup(func() { b.CloseClientConnections(); b.Close() })
	return b
}

// TestChangeDuringRenewalOnAnotherNode changes the secret and the hosts of a connection on
// one node while another node waits for a token with the old secret. Whatever becomes of
// that, steps on both nodes use a token of the new secret, and only that one is sent to
// the new host.
func TestChangeDuringRenewalOnAnotherNode(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	nodes, _ := startNodes(t, 2)
	for _, tc := range []struct {
		old    string // what becomes of the request with the old secret
		status int
		body   string
	}{
		{"a token", http.StatusOK, `{"access_token": "old-token", "expires_in": 3600}`},
		{"a refusal", http.StatusUnauthorized, `{"error": "invalid_client"}`},
		{"an error", http.StatusBadGateway, `<html>`},
	} {
		oauth, service := oauthserver.Start(t), newBearers(t)
		isOld := func(r *http.Request) bool {
			_, secret, _ := r.BasicAuth()
			return secret == oauthserver.ClientSecret
		}
		arrived, released := make(chan struct{}, 100), make(chan struct{})
		oauth.Set(func(now *oauthserver.Settings) {
			now.Before = func(r *http.Request) {
				if isOld(r) {
					arrived <- struct{}{}
					select {
					case <-released:
					case <-r.Context().Done():
					}
				}
			}
			now.Respond = func(w http.ResponseWriter, r *http.Request) {
				status, body := http.StatusOK, `{"access_token": "new-token", "expires_in": 3600}`
				if isOld(r) {
					status, body = tc.status, tc.body
				}
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
			}
		})
		id := createClient(t, nodes[0], oauth)
		workflow := flow.Define(t, nodes[0].Client, flow.HTTP("call", service.URL, "connection", name))
		ids := startRuns(t, nodes[1].Client, workflow, 1)
		<-arrived
		first := startRuns(t, nodes[0].Client, workflow, 20)
		ids = append(ids, startRuns(t, nodes[1].Client, workflow, 20)...)
		nodes[0].Expect(t, http.StatusOK, "PATCH", "/v1/connections/"+id, map[string]any{
			"fields":     map[string]string{"client_secret": "another-secret-of-the-client"},
			"definition": map[string]any{"hosts": []string{oauth.URL, service.URL}, "token_url": oauth.URL + "/token"},
		})
		awaitSuccess(t, nodes[0].Client, first) // they do not wait for the other node
		close(released)
		awaitSuccess(t, nodes[0].Client, ids)
		service.mu.Lock()
		for _, id := range append(ids, first...) {
			if got := service.seen[id+"/call"]; !slices.Equal(got, []string{"Bearer new-token"}) {
				t.Errorf("%s: the call of %s was sent with %q", tc.old, id, got)
			}
		}
		service.mu.Unlock()
		if c := show(t, nodes[1], id); c.Status != "connected" {
			t.Errorf("%s: %+v", tc.old, c)
		}
		nodes[0].Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{"state": "paused"})
		nodes[0].Expect(t, http.StatusNoContent, "DELETE", "/v1/connections/"+id, nil)
	}
}

// TestChangeKeepsConsentOnAnotherNode changes a connection on one node in a way that keeps
// the consent, while another node waits for a new token. The refresh token is valid once:
// it must be used once, and the token that it was used for must not be lost.
func TestChangeKeepsConsentOnAnotherNode(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	oauth := oauthserver.Start(t)
	nodes, person := startNodes(t, 2)
	id := person.connect(t, oauth, "one.example.com")
	workflow := define(t, nodes[0].Client, oauth)
	for _, change := range []map[string]any{
		{"fields": map[string]string{"client_secret": oauthserver.ClientSecret}},
		{"definition": consented(oauth)},
	} {
		arrived, released := make(chan struct{}, 100), make(chan struct{})
		oauth.Set(func(now *oauthserver.Settings) {
			now.Before = func(r *http.Request) {
				arrived <- struct{}{}
				select {
				case <-released:
				case <-r.Context().Done():
				}
			}
		})
		oauth.ExpireAll()
		before := oauth.Requests("refresh_token")
		ids := startRuns(t, nodes[1].Client, workflow, 1)
		<-arrived
		ids = append(ids, startOnAll(t, nodes, workflow, 10)...)
		nodes[0].Expect(t, http.StatusOK, "PATCH", "/v1/connections/"+id, change)
		ids = append(ids, startOnAll(t, nodes, workflow, 10)...)
		close(released)
		awaitSuccess(t, nodes[0].Client, ids)
		wantOnce(t, oauth, ids)
		if c, n := show(t, nodes[0], id), oauth.Requests("refresh_token")-before; c.Status != "connected" || n != 1 {
			t.Errorf("%v: %+v after %d renewals", change, c, n)
		}
	}
}

// TestChangeDuringConsentOnAnotherNode begins a consent on one node and completes it on
// another. A change that was made meanwhile, on either of them, stays.
func TestChangeDuringConsentOnAnotherNode(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	oauth := oauthserver.Start(t)
	nodes, person := startNodes(t, 2)
	hosts := []string{"one.example.com", "two.example.com"}
	id := person.connect(t, oauth, hosts...)
	workflow := define(t, nodes[0].Client, oauth)
	for i, node := range nodes { // which makes the change
		back := person.at(nodes[0]).begin(t, oauth, id+"/reconnect", nil)
		hosts = hosts[1:]
		node.Expect(t, http.StatusOK, "PATCH", "/v1/connections/"+id, map[string]any{"definition": consented(oauth, hosts...)})
		if done := person.at(nodes[1]).callback(t, back); done.Get("error") != "consent_expired" {
			t.Errorf("changed on node %d: the consent ended with %v", i, done)
		}
		for _, node := range nodes {
			if c := show(t, node, id); len(c.Hosts) != 1+len(hosts) || c.Status == "needs_reconnect" {
				t.Errorf("changed on node %d: %+v", i, c)
			}
		}
		ids := startOnAll(t, nodes, workflow, 1)
		awaitSuccess(t, nodes[0].Client, ids)
		wantOnce(t, oauth, ids)
	}
	// Without a change it can be completed anywhere.
	if made := person.at(nodes[1]).finish(t, person.at(nodes[0]).begin(t, oauth, id+"/reconnect", nil)); made != id {
		t.Errorf("reconnected %s", made)
	}
}
