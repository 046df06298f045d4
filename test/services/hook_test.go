package services_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// bot stands for the Bot API with a bot that tells a URL what people write.
type bot struct {
	mu sync.Mutex
	// url and secret are those of the last setWebhook; "" after deleteWebhook.
	url, secret string
	calls       []string // the methods that were called
	problem     string   // what setWebhook answers, if it fails
}

func (b *bot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	method, ok := strings.CutPrefix(r.URL.Path, "/bot"+token+"/")
	if r.Host != "api.telegram.org" || !ok {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var body struct {
		URL    string `json:"url"`
		Secret string `json:"secret_token"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body) // the test compares it
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, method)
	switch {
	case method == "setWebhook" && b.problem != "":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"ok": false, "error_code": 400, "description": %q}`, b.problem)
		return
	case method == "setWebhook":
		b.url, b.secret = body.URL, body.Secret
	case method == "deleteWebhook":
		b.url, b.secret = "", ""
	}
	fmt.Fprint(w, `{"ok": true, "result": true}`)
}

func (b *bot) webhook() (url, secret string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.url, b.secret
}

// count returns how often a method was called.
func (b *bot) count(method string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(b.calls), func(called string) bool { return called != method }))
}

func (b *bot) fail(problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problem = problem
}

// botServer is a server with a connection to the bot.
type botServer struct {
	*harness.Server
	network *internet
	dir     string
}

func (b *bot) connect(t *testing.T) *botServer {
	t.Helper()
	s := &botServer{network: newInternet(t, b.ServeHTTP), dir: t.TempDir()}
	s.Server = s.network.startIn(t, s.dir)
	s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
		"name": "my-bot", "integration": "telegram", "auth": "api_key", "fields": map[string]any{"token": token},
	})
	return s
}

// restart kills the server and starts it again at another address.
func (s *botServer) restart(t *testing.T) {
	t.Helper()
	key := s.Key
	s.Kill(t)
	s.Server = s.network.startIn(t, s.dir)
	s.Key = key
}

// define creates an active workflow with a trigger of the bot.
func (s *botServer) define(t *testing.T, triggerType string) string {
	t.Helper()
	workflow := flow.Define(t, s.Client, flow.Set("text", "${{ trigger.payload.text ?? trigger.payload.data }}"))
	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{
		"state": "active", "triggers": []any{map[string]any{"id": "bot", "type": triggerType, "connection": "my-bot"}},
	})
	return workflow
}

func (s *botServer) setState(t *testing.T, workflow, state string) {
	t.Helper()
	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{"state": state})
}

type subscribed struct {
	Subscription *struct {
		Status    string
		LastError *struct{ Code, Message string } `json:"last_error"`
		URL       *string
	}
	LastError *struct{ Code string } `json:"last_error"`
}

// subscription returns what is shown of the trigger of a workflow.
func (s *botServer) subscription(t *testing.T, workflow string) subscribed {
	t.Helper()
	var triggers struct{ Data []subscribed }
	s.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+workflow+"/triggers", nil).Decode(t, &triggers)
	return triggers.Data[0]
}

func (s *botServer) awaitStatus(t *testing.T, workflow, status string) subscribed {
	t.Helper()
	var got subscribed
	harness.Eventually(t, "the subscription is "+status, func() bool {
		got = s.subscription(t, workflow)
		return got.Subscription != nil && got.Subscription.Status == status
	})
	return got
}

// send makes a call as Telegram does, and checks the status of the response.
func (s *botServer) send(t *testing.T, url, secret, update string, status int) {
	t.Helper()
	got, err := s.With("").Open(t.Context(), "POST", flow.PathFrom(t, url, "/service-hooks/"), strings.NewReader(update),
		"Content-Type", "application/json", "X-Telegram-Bot-Api-Secret-Token", secret)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if got.StatusCode != status {
		t.Fatalf("the response to %s is %d", update, got.StatusCode)
	}
}

func (s *botServer) runs(t *testing.T, workflow string) int {
	t.Helper()
	var runs struct{ Data []struct{ ID string } }
	s.Expect(t, http.StatusOK, "GET", "/v1/runs?limit=100&workflow_id="+workflow, nil).Decode(t, &runs)
	return len(runs.Data)
}

// Two workflows share the webhook of a bot. It is set when the first one becomes active and
// deleted after the last one was paused; in between, each update starts one run of the
// workflow that it is for.
func TestSharedHook(t *testing.T) {
	t.Parallel()
	b := &bot{}
	s := b.connect(t)
	messages := s.define(t, "telegram.new_message")
	s.awaitStatus(t, messages, "active")
	buttons := s.define(t, "telegram.button_pressed")
	s.awaitStatus(t, buttons, "active")
	url, secret := b.webhook()
	if b.count("setWebhook") != 1 || !strings.HasPrefix(url, s.URL+"/service-hooks/") || len(secret) < 32 {
		t.Fatalf("the bot was called with %v, its URL is %q", b.calls, url)
	}

	const message = `{"update_id": 1, "message": {"message_id": 1, "chat": {"id": 7}, "text": "Hello"}}`
	s.send(t, url, secret, message, http.StatusOK)
	s.send(t, url, secret, message, http.StatusOK) // again
	s.send(t, url, secret, `{"update_id": 2, "callback_query": {"id": "x", "data": "yes"}}`, http.StatusOK)
	s.send(t, url, secret, `{"update_id": 3, "poll": {"id": "5"}}`, http.StatusOK)
	if m, b := s.runs(t, messages), s.runs(t, buttons); m != 1 || b != 1 {
		t.Errorf("there are %d runs for messages and %d for buttons", m, b)
	}

	s.send(t, url, "guessed", `{"update_id": 4, "message": {"text": "forged"}}`, http.StatusUnauthorized)
	s.send(t, url, "", `{"update_id": 4, "message": {"text": "forged"}}`, http.StatusUnauthorized)
	s.send(t, url[:len(url)-4]+"AAAA", secret, message, http.StatusNotFound)
	s.send(t, url, secret, `{"update_id": `, http.StatusBadRequest)
	if n := s.runs(t, messages); n != 1 {
		t.Errorf("calls that are not genuine have started %d runs", n-1)
	}
	harness.Eventually(t, "the trigger says that a call was rejected", func() bool {
		failed := s.subscription(t, messages).LastError
		return failed != nil && failed.Code == "signature_refused"
	})

	s.setState(t, messages, "paused")
	s.send(t, url, secret, `{"update_id": 5, "message": {"text": "to nobody"}}`, http.StatusOK)
	s.setState(t, buttons, "paused")
	harness.Eventually(t, "the webhook is deleted", func() bool { return b.count("deleteWebhook") == 1 })
	harness.Eventually(t, "the URL is forgotten", func() bool {
		got, err := s.With("").Do(t.Context(), "POST", flow.PathFrom(t, url, "/service-hooks/"), json.RawMessage(message), "X-Telegram-Bot-Api-Secret-Token", secret)
		return err == nil && got.Status == http.StatusNotFound
	})
	if n := s.runs(t, messages); n != 1 {
		t.Errorf("a paused workflow has %d runs", n)
	}

	s.setState(t, messages, "active")
	s.awaitStatus(t, messages, "active")
	if again, _ := b.webhook(); again == "" || again == url {
		t.Errorf("the URL is %q after %q was forgotten", again, url)
	}
	s.setState(t, messages, "paused")
	s.Expect(t, http.StatusNoContent, "DELETE", "/v1/workflows/"+messages, nil)
	harness.Eventually(t, "the webhook of a deleted workflow is deleted", func() bool { return b.count("deleteWebhook") == 2 })
	if strings.Contains(s.Log(), secret) || strings.Contains(s.Log(), strings.TrimPrefix(url, s.URL+"/service-hooks/")) {
		t.Error("the log has the secret or the token of the URL")
	}
}

// A service that rejects the URL says why, and is asked again when somebody has changed the
// connection. After a restart at another address, it is told that one.
func TestHookIsRejected(t *testing.T) {
	t.Parallel()
	b := &bot{}
	b.fail("Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
	s := b.connect(t)
	workflow := s.define(t, "telegram.new_message")
	failed := s.awaitStatus(t, workflow, "failing").Subscription
	if e := failed.LastError; e == nil || e.Code != "invalid" || !strings.Contains(e.Message, "An HTTPS URL must be provided") || !strings.Contains(e.Message, "--public-url") {
		t.Fatalf("the error is %+v", failed.LastError)
	}
	b.fail("")
	var connections struct{ Data []struct{ ID string } }
	s.Expect(t, http.StatusOK, "GET", "/v1/connections", nil).Decode(t, &connections)
	s.Expect(t, http.StatusOK, "POST", "/v1/connections/"+connections.Data[0].ID+"/test", nil)
	if ok := s.awaitStatus(t, workflow, "active").Subscription; ok.LastError != nil {
		t.Errorf("the error is still %+v", ok.LastError)
	}
	before, _ := b.webhook()
	s.restart(t)
	harness.Eventually(t, "the service knows the new address", func() bool {
		now, secret := b.webhook()
		if now == before || !strings.HasPrefix(now, s.URL+"/") {
			return false
		}
		s.send(t, now, secret, `{"update_id": 1, "message": {"text": "Hello"}}`, http.StatusOK)
		return true
	})
	if n := s.runs(t, workflow); n != 1 {
		t.Errorf("there are %d runs", n)
	}
}

// forge stands for GitHub with a repository whose webhooks it keeps.
type forge struct {
	mu     sync.Mutex
	next   int
	hooks  map[int]webhookConfig
	looked int // how often the webhooks were listed
}

type webhookConfig struct {
	URL    string `json:"url"`
	Secret string `json:"secret"`
}

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	id, isOne := strings.CutPrefix(r.URL.Path, "/repos/acme/shop/hooks/")
	switch {
	case r.Host != "api.github.com" || r.Header.Get("Authorization") != "Bearer ghp_made-up":
		w.WriteHeader(http.StatusUnauthorized)
	case isOne && r.Method == http.MethodDelete:
		n, _ := strconv.Atoi(id) // the test compares what is left
		delete(f.hooks, n)
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path == "/repos/acme/shop/hooks" && r.Method == http.MethodPost:
		var body struct{ Config webhookConfig }
		_ = json.NewDecoder(r.Body).Decode(&body) // the test compares it
		f.next++
		f.hooks[f.next] = body.Config
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id": %d, "config": {"url": %q}}`, f.next, body.Config.URL)
	case r.URL.Path == "/repos/acme/shop/hooks":
		f.looked++
		var list []string
		for n, config := range f.hooks {
			list = append(list, fmt.Sprintf(`{"id": %d, "config": {"url": %q}}`, n, config.URL))
		}
		fmt.Fprintf(w, "[%s]", strings.Join(list, ","))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// only returns the only webhook.
func (f *forge) only() (webhookConfig, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, config := range f.hooks {
		return config, len(f.hooks) == 1
	}
	return webhookConfig{}, false
}

// The server dies after the service was told the URL, before it has recorded that. The next
// process finds the webhook instead of creating a second one, calls start runs, and the
// webhook is deleted with the trigger.
func TestHookInterrupted(t *testing.T) {
	t.Parallel()
	f := &forge{hooks: map[int]webhookConfig{}}
	s := &botServer{network: newInternet(t, f.ServeHTTP), dir: t.TempDir()}
	const publicURL = "https://stepmill.example"
	s.Server = s.network.startWith(t, s.dir, "after_registration:exit", "--public-url="+publicURL)
	s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
		"name": "code", "integration": "github", "auth": "bearer", "fields": map[string]any{"token": "ghp_made-up"},
	})
	workflow := flow.Define(t, s.Client, flow.Set("ref", "${{ trigger.payload.data.ref }}"))
	trigger := map[string]any{"id": "pushes", "type": "github.event", "connection": "code", "with": map[string]any{"repository": "acme/shop", "events": []string{"push"}}}
	// The server can die before it has responded.
	_, _ = s.Do(t.Context(), "PATCH", "/v1/workflows/"+workflow, map[string]any{"state": "active", "triggers": []any{trigger}})
	<-s.Done()
	if _, ok := f.only(); !ok {
		t.Fatalf("the webhooks are %v", f.hooks)
	}
	key := s.Key
	s.Server = s.network.startWith(t, s.dir, "at_start@nobody:exit", "--public-url="+publicURL)
	s.Key = key

	s.awaitStatus(t, workflow, "active")
	config, ok := f.only()
	if !ok || f.looked == 0 || !strings.HasPrefix(config.URL, publicURL+"/service-hooks/") {
		t.Fatalf("the webhooks are %v after they were listed %d times", f.hooks, f.looked)
	}
	const push = `{"ref": "refs/heads/main"}`
	mac := hmac.New(sha256.New, []byte(config.Secret))
	mac.Write([]byte(push))
	call := func(signature string) int {
		got, err := s.With("").Open(t.Context(), "POST", flow.PathFrom(t, config.URL, "/service-hooks/"), strings.NewReader(push),
			"Content-Type", "application/json", "X-GitHub-Event", "push", "X-GitHub-Delivery", "d1", "X-Hub-Signature-256", signature)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		return got.StatusCode
	}
	genuine := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	if status := call(genuine); status != http.StatusOK {
		t.Errorf("the response is %d", status)
	}
	if status := call("sha256=00"); status != http.StatusUnauthorized {
		t.Errorf("the response to a forged call is %d", status)
	}
	if n := s.runs(t, workflow); n != 1 {
		t.Errorf("there are %d runs", n)
	}
	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{"triggers": []any{map[string]any{"id": "manual", "type": "manual"}}})
	harness.Eventually(t, "the webhook is deleted", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.hooks) == 0
	})
}
