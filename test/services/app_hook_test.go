package services_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

const signingSecret = "8f742231b10e8888abcd99yyyzzz85a5"

// serveSlack answers as Slack does. A code is for the team that it names, and the token that
// it is exchanged for, too.
func serveSlack(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = r.ParseForm() // of another request, there is none
	switch r.Host + r.URL.Path {
	case "slack.com/api/oauth.v2.access":
		team, _ := strings.CutPrefix(r.PostForm.Get("code"), "code-")
		fmt.Fprintf(w, `{"ok": true, "access_token": "xoxb-token-%s", "token_type": "bot", "team": {"id": %q}}`, team, team)
	case "slack.com/api/auth.test":
		team, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer xoxb-token-")
		fmt.Fprintf(w, `{"ok": %t, "user": "bot", "team": %q, "team_id": %q}`, ok, team, team)
	default:
		fmt.Fprint(w, `{"ok": false, "error": "unknown_method"}`)
	}
}

// tenant is a workspace, with its key and a person in it.
type tenant struct {
	*harness.Client
	t      *testing.T
	cookie string
}

// do sends a request with the key, or to the dashboard as the person.
func (w tenant) do(status int, method, path string, body any) harness.Response {
	w.t.Helper()
	if strings.HasPrefix(path, "/ui/") {
		return w.With("").Expect(w.t, status, method, path, body, "Cookie", w.cookie)
	}
	return w.Expect(w.t, status, method, path, body)
}

func joined(t *testing.T, key *harness.Client, answer harness.Response) tenant {
	t.Helper()
	cookie, _, _ := strings.Cut(answer.Header.Get("Set-Cookie"), ";")
	return tenant{key, t, cookie}
}

const somePassword = "a difficult engine to guess"

// firstTenant returns the first workspace.
func firstTenant(t *testing.T, s *harness.Server) tenant {
	t.Helper()
	return joined(t, s.Client, s.With("").Expect(t, http.StatusCreated, "POST", "/ui/v1/welcome", map[string]any{
		"token": s.AwaitSetupToken(t), "email": "ada@example.com", "name": "Ada", "password": somePassword,
	}))
}

// newTenant makes another workspace, with a person of its own.
func (w tenant) newTenant(name string) tenant {
	w.t.Helper()
	key := flow.NewWorkspace(w.t, w.Client, "enterprise")
	var invited struct{ Link string }
	key.Expect(w.t, http.StatusCreated, "POST", "/v1/invitations", map[string]any{"email": name + "@example.com", "role": "owner"}).Decode(w.t, &invited)
	return joined(w.t, key, w.With("").Expect(w.t, http.StatusCreated, "POST", "/ui/v1/invitations/accept", map[string]any{
		"token": invited.Link[strings.LastIndexAny(invited.Link, "#/=")+1:], "name": name, "password": somePassword,
	}))
}

// consent lets a person consent to what a path asks for, in a team of Slack.
func (w tenant) consent(path, team string, body any) {
	w.t.Helper()
	var begun struct {
		AuthorizeURL string `json:"authorize_url"`
	}
	w.do(http.StatusOK, "POST", "/ui/v1/connections/"+path, body).Decode(w.t, &begun)
	asked, err := url.Parse(begun.AuthorizeURL)
	if err != nil || asked.Host != "slack.com" {
		w.t.Fatalf("the person is sent to %q", begun.AuthorizeURL)
	}
	back := url.Values{"state": {asked.Query().Get("state")}, "code": {"code-" + team}}
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.URL+"/ui/v1/oauth/callback?"+back.Encode(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Cookie", w.cookie)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	answer.Body.Close()
	location, err := answer.Location()
	if err != nil {
		w.t.Fatalf("%s: %v", answer.Status, err)
	}
	switch done := location.Query(); {
	case done.Get("confirm") != "": // another account than before
		w.do(http.StatusOK, "POST", "/ui/v1/connections/confirm", map[string]any{"state": done.Get("state")})
	case done.Get("connection") == "":
		w.t.Fatalf("the consent ends at %s", location)
	}
}

func (w tenant) connectSlack(team string) {
	w.t.Helper()
	w.consent("connect", team, map[string]any{"name": "team", "integration": "slack", "auth": "oauth2"})
}

// reconnectSlack consents anew for the connection.
func (w tenant) reconnectSlack(team string) {
	w.t.Helper()
	var all struct{ Data []struct{ ID string } }
	w.do(http.StatusOK, "GET", "/v1/connections", nil).Decode(w.t, &all)
	w.consent(all.Data[0].ID+"/reconnect", team, nil)
}

// app is an OAuth app at Slack.
type app struct {
	ID    string
	Hooks []struct{ Hook, URL, Setup string }
}

func (w tenant) registerApp(clientID string, shared bool) (made app) {
	w.t.Helper()
	w.do(http.StatusCreated, "POST", "/v1/oauth-apps", map[string]any{
		"integration": "slack", "auth": "oauth2", "client_id": clientID, "client_secret": "the secret of " + clientID, "shared": shared,
		"fields": map[string]any{"signing_secret": signingSecret},
	}).Decode(w.t, &made)
	return made
}

// listen creates an active workflow that starts when the app is mentioned.
func (w tenant) listen() string {
	w.t.Helper()
	workflow := flow.Define(w.t, w.Client, flow.Set("text", "${{ trigger.payload.text }}"))
	w.do(http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{
		"triggers": []any{map[string]any{"id": "mention", "type": "slack.mention", "connection": "team"}},
	})
	return workflow
}

func (w tenant) awaitStatus(workflow, status string) (got subscribed) {
	w.t.Helper()
	harness.Eventually(w.t, "the subscription is "+status, func() bool {
		var triggers struct{ Data []subscribed }
		w.do(http.StatusOK, "GET", "/v1/workflows/"+workflow+"/triggers", nil).Decode(w.t, &triggers)
		got = triggers.Data[0]
		return got.Subscription != nil && got.Subscription.Status == status
	})
	return got
}

// heard returns the texts with which runs were started, sorted.
func (w tenant) heard(workflow string) []string {
	w.t.Helper()
	out := []string{}
	for _, id := range w.runs(workflow) {
		var run struct {
			Trigger struct{ Payload struct{ Text string } }
		}
		w.do(http.StatusOK, "GET", "/v1/runs/"+id, nil).Decode(w.t, &run)
		out = append(out, run.Trigger.Payload.Text)
	}
	slices.Sort(out)
	return out
}

// runs returns the runs of a workflow.
func (w tenant) runs(workflow string) (ids []string) {
	w.t.Helper()
	var runs struct{ Data []struct{ ID string } }
	w.do(http.StatusOK, "GET", "/v1/runs?limit=100&workflow_id="+workflow, nil).Decode(w.t, &runs)
	for _, one := range runs.Data {
		ids = append(ids, one.ID)
	}
	return ids
}

// awaitHeard waits until runs were started with these texts, and no others.
func (w tenant) awaitHeard(workflow string, want ...string) {
	w.t.Helper()
	harness.Eventually(w.t, fmt.Sprintf("the runs for %v are started", want), func() bool {
		return len(w.runs(workflow)) >= len(want)
	})
	if got := w.heard(workflow); !slices.Equal(got, want) {
		w.t.Errorf("runs for %v, not for %v", got, want)
	}
}

// mention returns what Slack says when the app is mentioned in a team.
func mention(team, text string, isBot bool) string {
	return fmt.Sprintf(`{"type": "event_callback", "team_id": %q, "event_id": "Ev-%s", "authorizations": [{"team_id": %q, "is_bot": %t}], "event": {"type": "app_mention", "text": %q}}`,
		team, text, team, isBot, text)
}

// callApp calls the URL of an app as Slack does, and returns the status and the body of the
// response.
func callApp(t *testing.T, s *harness.Server, address, secret, body string) (int, string) {
	t.Helper()
	now := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", now, body)
	got, err := s.With("").Open(t.Context(), "POST", flow.PathFrom(t, address, "/service-hooks/"), strings.NewReader(body),
		"Content-Type", "application/json", "X-Slack-Request-Timestamp", now, "X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(text)
}

// say calls the URL of an app with a mention, which is accepted.
func say(t *testing.T, s *harness.Server, address, team, text string) {
	t.Helper()
	if status, body := callApp(t, s, address, signingSecret, mention(team, text, true)); status != http.StatusOK {
		t.Fatalf("the response is %d %s", status, body)
	}
}

// One app at Slack serves all workspaces of an installation. What happens in a team starts
// runs in the workspaces only that have connected this team with this app, whatever they try.
func TestAppHookKeepsWorkspacesApart(t *testing.T) {
	t.Parallel()
	s := newInternet(t, serveSlack).start(t)
	first := firstTenant(t, s)
	second, third := first.newTenant("second"), first.newTenant("third")
	shared := first.registerApp("shared-client", true)
	address := shared.Hooks[0].URL
	if shared.Hooks[0].Hook != "slack.events" || !strings.Contains(shared.Hooks[0].Setup, address) {
		t.Errorf("the hooks of the app are %v", shared.Hooks)
	}
	if status, body := callApp(t, s, address, "", `{"type": "url_verification", "challenge": "abc"}`); status != http.StatusOK || body != "abc" {
		t.Errorf("the response to the check of the URL is %d %s", status, body)
	}

	first.connectSlack("T1")
	second.connectSlack("T2")
	third.connectSlack("T1")
	ones, twos, threes := first.listen(), second.listen(), third.listen()
	if got := first.awaitStatus(ones, "manual").Subscription; got.URL == nil || *got.URL != address {
		t.Errorf("the workspace of the app sees the URL %v", got.URL)
	}
	if got := second.awaitStatus(twos, "manual").Subscription; got.URL != nil {
		t.Errorf("another workspace sees the URL %s", *got.URL)
	}
	third.awaitStatus(threes, "manual")

	say(t, s, address, "T1", "1a")
	say(t, s, address, "T1", "1a") // once more, as Slack does if it gets no response
	say(t, s, address, "T2", "2a")
	say(t, s, address, "T9", "nobody")
	first.awaitHeard(ones, "1a")
	second.awaitHeard(twos, "2a")
	third.awaitHeard(threes, "1a")

	for what, call := range map[string]struct{ address, secret, body string }{
		"another secret":    {address, "another secret, not of the app", mention("T1", "forged", true)},
		"no secret":         {address, "", mention("T1", "forged", true)},
		"another hook":      {strings.Replace(address, ".events.", ".others.", 1), signingSecret, mention("T1", "forged", true)},
		"another signature": {address[:len(address)-1], signingSecret, mention("T1", "forged", true)},
	} {
		if status, _ := callApp(t, s, call.address, call.secret, call.body); status != http.StatusUnauthorized && status != http.StatusNotFound {
			t.Errorf("%s: the response is %d", what, status)
		}
	}
	if status, _ := callApp(t, s, address, signingSecret, mention("T1", "private", false)); status != http.StatusOK {
		t.Errorf("the response to what only a person may see is %d", status)
	}

	// A workspace that registers an app with the same client ID has no part in the shared one,
	// and no calls of its own app reach others.
	own := second.registerApp("shared-client", false)
	second.reconnectSlack("T1")
	second.awaitStatus(twos, "manual")
	say(t, s, address, "T1", "1b")
	say(t, s, address, "T2", "2b")
	say(t, s, own.Hooks[0].URL, "T1", "own")
	first.awaitHeard(ones, "1a", "1b")
	second.awaitHeard(twos, "2a", "own")
	third.awaitHeard(threes, "1a", "1b")

	// Without its own app, it uses the shared one again, in the team that it connects.
	second.do(http.StatusNoContent, "DELETE", "/v1/oauth-apps/"+own.ID, nil)
	if status, _ := callApp(t, s, own.Hooks[0].URL, signingSecret, mention("T1", "gone", true)); status != http.StatusNotFound {
		t.Errorf("a call for an app that was deleted: the response is %d", status)
	}
	second.reconnectSlack("T2")
	say(t, s, address, "T1", "1c")
	say(t, s, address, "T2", "2c")
	second.awaitHeard(twos, "2a", "2c", "own")
	first.awaitHeard(ones, "1a", "1b", "1c")
}

// A call that was answered starts its runs, also if the process dies at once. It starts them
// once.
func TestAppHookSurvivesAKill(t *testing.T) {
	t.Parallel()
	network, dir := newInternet(t, serveSlack), t.TempDir()
	s := network.startIn(t, dir)
	person := firstTenant(t, s)
	address := person.registerApp("a-client", false).Hooks[0].URL
	person.connectSlack("T1")
	workflow := person.listen()
	person.awaitStatus(workflow, "manual")
	var want []string
	for n := range 20 {
		text := fmt.Sprintf("m%02d", n)
		say(t, s, address, "T1", text)
		want = append(want, text)
	}
	s.Kill(t)
	s = network.startIn(t, dir)
	person.Client = s.With(person.Key)
	person.awaitHeard(workflow, want...)
}

// A bot token belongs to an app of its own, whose calls come at a URL of its own.
func TestHookOfAnOwnApp(t *testing.T) {
	t.Parallel()
	s := newInternet(t, serveSlack).start(t)
	connect := map[string]any{"name": "team", "integration": "slack", "auth": "bearer", "fields": map[string]any{"token": "xoxb-token-T1"}}
	var made struct{ ID string }
	s.Expect(t, http.StatusCreated, "POST", "/v1/connections", connect).Decode(t, &made)
	person := tenant{s.Client, t, ""}
	workflow := person.listen()
	if got := person.awaitStatus(workflow, "failing").Subscription; got.LastError == nil || !strings.Contains(got.LastError.Message, "enter the Signing secret") {
		t.Errorf("without a secret: %+v", got.LastError)
	}
	s.Expect(t, http.StatusOK, "PATCH", "/v1/connections/"+made.ID, json.RawMessage(`{"fields": {"signing_secret": "`+signingSecret+`"}}`))
	s.Expect(t, http.StatusOK, "POST", "/v1/connections/"+made.ID+"/test", nil)
	address := *person.awaitStatus(workflow, "manual").Subscription.URL
	say(t, s, address, "T1", "hello")
	say(t, s, address, "T2", "another team with the same app")
	person.awaitHeard(workflow, "hello")
}
