// Package connections_test checks what connections promise with the real binary and an
// OAuth 2 server: no run fails because a token expires, is revoked or is renewed by a
// process that dies, and no token appears anywhere but at its service.
package connections_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/oauthserver"
)

func TestMain(m *testing.M) {
	// Some of these tests mostly wait.
	harness.SetParallel(4)
	harness.Main(m)
}

const (
	allowLoopback = "--egress-allow=127.0.0.0/8"
	name          = "shop"
	email         = "ada@example.com"
	password      = "a difficult engine to guess"
)

// owner is a person with a session, who connects services.
type owner struct {
	*harness.Client
	cookie string
}

// signUp makes the first owner of an installation.
func signUp(t *testing.T, s *harness.Server, token string) owner {
	t.Helper()
	return newOwner(s, s.With("").Expect(t, http.StatusCreated, "POST", "/ui/v1/welcome", map[string]any{
		"token": token, "email": email, "name": "Ada", "password": password,
	}))
}

// signIn signs in the first owner again.
func signIn(t *testing.T, s *harness.Server) owner {
	t.Helper()
	return newOwner(s, s.With("").Expect(t, http.StatusCreated, "POST", "/ui/v1/session", map[string]any{"email": email, "password": password}))
}

func newOwner(s *harness.Server, answer harness.Response) owner {
	cookie, _, _ := strings.Cut(answer.Header.Get("Set-Cookie"), ";")
	return owner{s.With(""), cookie}
}

// at returns the owner at another node.
func (o owner) at(s *harness.Server) owner { return owner{s.With(""), o.cookie} }

func (o owner) post(t *testing.T, status int, path string, body any) harness.Response {
	t.Helper()
	return o.Expect(t, status, "POST", path, body, "Cookie", o.cookie)
}

// connect connects the workspace with the server by consent and returns the id of the
// connection. Its token is also sent to the other hosts.
func (o owner) connect(t *testing.T, oauth *oauthserver.Server, others ...string) string {
	t.Helper()
	return o.finish(t, o.begin(t, oauth, "connect", map[string]any{
		"name": name, "auth": "oauth2", "fields": map[string]string{"client_id": oauthserver.ClientID, "client_secret": oauthserver.ClientSecret},
		"definition": consented(oauth, others...),
	}))
}

// consented is the definition of a connection that needs consent.
func consented(oauth *oauthserver.Server, others ...string) map[string]any {
	return map[string]any{
		"hosts": append([]string{oauth.URL}, others...), "authorize_url": oauth.URL + "/authorize", "token_url": oauth.URL + "/token", "test_url": oauth.URL + "/resource",
	}
}

// reconnect renews the consent for a connection.
func (o owner) reconnect(t *testing.T, oauth *oauthserver.Server, id string) {
	t.Helper()
	o.finish(t, o.begin(t, oauth, id+"/reconnect", nil))
}

// begin asks for a consent and returns what the server sends back once it is given.
func (o owner) begin(t *testing.T, oauth *oauthserver.Server, path string, body any) url.Values {
	t.Helper()
	var begun struct {
		AuthorizeURL string `json:"authorize_url"`
	}
	o.post(t, http.StatusOK, "/ui/v1/connections/"+path, body).Decode(t, &begun)
	return oauth.Consent(t, begun.AuthorizeURL)
}

// finish completes a consent and returns the id of the connection.
func (o owner) finish(t *testing.T, back url.Values) string {
	t.Helper()
	done := o.callback(t, back)
	if done.Get("connection") == "" {
		t.Fatalf("the consent ended with %v", done)
	}
	return done.Get("connection")
}

// callback does what the browser of the person does when the service sends it back, and
// returns the parameters of the page at the end.
func (o owner) callback(t *testing.T, back url.Values) url.Values {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.URL+"/ui/v1/oauth/callback?"+back.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Cookie", o.cookie)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	location, err := answer.Location()
	if err != nil {
		t.Fatalf("%s: %v", answer.Status, err)
	}
	return location.Query()
}

// define makes a workflow that calls the protected resource once.
func define(t *testing.T, c *harness.Client, oauth *oauthserver.Server) string {
	t.Helper()
	return flow.Define(t, c, flow.HTTP("call", oauth.URL+"/resource", "connection", name))
}

func startRuns(t *testing.T, c *harness.Client, workflow string, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		var started struct{ ID string }
		c.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{"payload": map[string]any{"n": i}}).Decode(t, &started)
		ids[i] = started.ID
	}
	return ids
}

type runDetail struct {
	Status     string
	Error      *struct{ Code, Message string }
	WaitingFor *struct{ Kind, Reason string } `json:"waiting_for"`
}

func get(t *testing.T, c *harness.Client, id string) (d runDetail) {
	t.Helper()
	c.Expect(t, http.StatusOK, "GET", "/v1/runs/"+id, nil).Decode(t, &d)
	return d
}

// awaitSuccess waits until all runs have succeeded.
func awaitSuccess(t *testing.T, c *harness.Client, ids []string) {
	t.Helper()
	for _, id := range ids {
		harness.Eventually(t, "the run "+id+" succeeds", func() bool {
			d := get(t, c, id)
			if d.Error != nil {
				t.Fatalf("%s failed: %+v", id, *d.Error)
			}
			return d.Status == "succeeded"
		})
	}
}

// wantOnce checks that each run had its effect once.
func wantOnce(t *testing.T, oauth *oauthserver.Server, ids []string) {
	t.Helper()
	served := oauth.Served()
	for _, id := range ids {
		if n := served[id+"/call"]; n != 1 {
			t.Errorf("the call of %s was served %d times", id, n)
		}
	}
}

func TestRevokedTokenPausesRuns(t *testing.T) {
	t.Parallel()
	oauth := oauthserver.Start(t)
	s := harness.Start(t, t.TempDir(), allowLoopback)
	person := signUp(t, s, s.AwaitSetupToken(t))
	id := person.connect(t, oauth)
	workflow := define(t, s.Client, oauth)
	alert := flow.Define(t, s.Client, flow.Set("tell", "${{ trigger.payload.data.name }}"))
	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+alert, map[string]any{
		"triggers": []any{map[string]any{"id": "broken", "type": "event", "events": []string{"connection.broken"}}},
	})
	n := lane.Pick(100, 1000)
	ids := startRuns(t, s.Client, workflow, n/2)
	oauth.RevokeAll()
	ids = append(ids, startRuns(t, s.Client, workflow, n-n/2)...)
	waits := func(id string) bool {
		d := get(t, s.Client, id)
		return d.Status == "succeeded" || d.WaitingFor != nil && strings.Contains(d.WaitingFor.Reason, name)
	}
	for _, id := range ids {
		harness.Eventually(t, "the run waits for its connection, or has ended before", func() bool { return waits(id) })
	}
	var shown struct {
		Status      string
		WaitingRuns int `json:"waiting_runs"`
	}
	s.Expect(t, http.StatusOK, "GET", "/v1/connections/"+id, nil).Decode(t, &shown)
	if shown.Status != "needs_reconnect" || shown.WaitingRuns == 0 {
		t.Errorf("%+v", shown)
	}
	person.reconnect(t, oauth, id)
	awaitSuccess(t, s.Client, ids)
	wantOnce(t, oauth, ids)
	var alerts struct {
		Data []struct{ ID string }
	}
	s.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+alert+"/runs", nil).Decode(t, &alerts)
	if len(alerts.Data) != 1 {
		t.Errorf("%d alerts about the broken connection", len(alerts.Data))
	}
	if n := oauth.Requests("refresh_token"); n != 1 {
		t.Errorf("the revoked token was used %d times for a renewal", n)
	}
}

// TestKillDuringRenewal kills the process at each failpoint of a renewal. A service that
// accepts the old refresh token again goes unnoticed. Otherwise the connection has to
// be reconnected, and the run waits for that.
func TestKillDuringRenewal(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before_renewal", "after_renewal", "after_renewal_stored"} {
		for _, rotates := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, rotating %v", point, rotates), func(t *testing.T) {
				t.Parallel()
				oauth := oauthserver.Start(t)
				oauth.Set(func(now *oauthserver.Settings) { now.Rotates = rotates })
				s := harness.Start(t, t.TempDir(), allowLoopback)
				person := signUp(t, s, s.AwaitSetupToken(t))
				id, workflow := person.connect(t, oauth), define(t, s.Client, oauth)
				key := s.Key
				s.Stop(t)
				for n := range lane.Pick(1, 17) { // 102 deaths in the long lane
					oauth.ExpireAll()
					dying := harness.StartProcess(t, harness.Options{Dir: s.Dir, Args: []string{allowLoopback}, Failpoint: point + ":kill"})
					if err := dying.AwaitReadyLine(); err != nil {
						t.Fatal(err)
					}
					dying.AwaitReady(t)
					dying.Key = key
					start := func(c *harness.Client) (harness.Response, error) {
						return c.DoUntilAvailable(t.Context(), "POST", "/v1/workflows/"+workflow+"/runs", nil, "Idempotency-Key", fmt.Sprintf("death-%d", n))
					}
					if response, err := start(dying.Client); err == nil && response.Status != http.StatusCreated {
						t.Fatalf("%d %s", response.Status, response.Body)
					}
					if exit := dying.Wait(t); exit.Code == 0 {
						t.Fatal("the server did not die")
					}
					again := harness.Start(t, s.Dir, allowLoopback)
					again.Key = key
					// The response may have died with the process: the key returns it again.
					response, err := start(again.Client)
					if err != nil || response.Status != http.StatusCreated {
						t.Fatalf("%d %s %v", response.Status, response.Body, err)
					}
					var started struct{ ID string }
					response.Decode(t, &started)
					ids := []string{started.ID}
					if rotates && point == "after_renewal" {
						harness.Eventually(t, "the run waits for its connection", func() bool {
							d := get(t, again.Client, ids[0])
							return d.WaitingFor != nil && strings.Contains(d.WaitingFor.Reason, name)
						})
						person.at(again).reconnect(t, oauth, id)
					}
					awaitSuccess(t, again.Client, ids)
					wantOnce(t, oauth, ids)
					again.Stop(t)
				}
			})
		}
	}
}
