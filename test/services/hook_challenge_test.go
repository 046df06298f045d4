package services_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// graph stands for Microsoft Graph with a mailbox. It accepts a subscription if the URL
// answers its challenge, which it sends before it answers itself.
type graph struct {
	mu           sync.Mutex
	call         func(query, body string) (status int, text string) // calls the URL of the subscription
	subscription struct{ NotificationURL, Resource, ChangeType, ClientState, ExpirationDateTime string }
	mail         []string
	removed      int
}

func (g *graph) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Host == "login.microsoftonline.com":
		fmt.Fprint(w, `{"access_token": "eyJ.token", "token_type": "Bearer", "expires_in": 3600}`)
	case r.Method == http.MethodPost && r.URL.Path == "/v1.0/subscriptions":
		g.subscribe(w, r)
	case r.Method == http.MethodDelete && r.URL.Path == "/v1.0/subscriptions/s1":
		g.removed++
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path == "/v1.0/users/team@example.org/mailFolders/inbox/messages":
		at := time.Now().UTC().Format(time.RFC3339)
		var messages []string
		for n, subject := range g.mail {
			messages = append(messages, fmt.Sprintf(`{"id": "m%d", "subject": %q, "receivedDateTime": %q, "isDraft": false}`, n, subject, at))
		}
		fmt.Fprintf(w, `{"value": [%s]}`, strings.Join(messages, ","))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (g *graph) subscribe(w http.ResponseWriter, r *http.Request) {
	if err := json.NewDecoder(r.Body).Decode(&g.subscription); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	const token = "Validation: is <this> URL reachable?"
	status, text := g.call("?validationToken="+url.QueryEscape(token), "")
	if status != http.StatusOK || text != token {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error": {"code": "ValidationError", "message": "Subscription validation request failed."}}`)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"id": "s1", "expirationDateTime": %q}`, g.subscription.ExpirationDateTime)
}

// A service that checks the URL while it is told gets its challenge answered.
func TestChallengeDuringRegistration(t *testing.T) {
	t.Parallel()
	g := &graph{}
	s := newInternet(t, g.ServeHTTP).start(t)
	g.call = func(query, body string) (int, string) {
		got, err := s.With("").Open(t.Context(), "POST", flow.PathFrom(t, g.subscription.NotificationURL, "/service-hooks/")+query, strings.NewReader(body), "Content-Type", "application/json")
		if err != nil {
			return 0, err.Error()
		}
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		if err != nil {
			return 0, err.Error()
		}
		return got.StatusCode, string(text)
	}
	s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
		"name": "office", "integration": "microsoft", "auth": "client_credentials",
		"fields": map[string]any{"tenant": "example.org", "services": "outlook", "client_id": "app", "client_secret": "secret"},
	})
	workflow := flow.Define(t, s.Client, flow.Set("subject", "${{ trigger.payload.subject }}"))
	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{
		"state": "active", "triggers": []any{map[string]any{
			"id": "mail", "type": "outlook.new_message", "connection": "office", "every": "24h", "with": map[string]any{"mailbox": "team@example.org"},
		}},
	})
	harness.Eventually(t, "the subscription is active, and the first poll is over", func() bool {
		var list struct {
			Data []struct {
				NextRunAt    *time.Time `json:"next_run_at"`
				Subscription *struct{ Status string }
			}
		}
		s.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+workflow+"/triggers", nil).Decode(t, &list)
		state := list.Data[0]
		return state.Subscription != nil && state.Subscription.Status == "active" && state.NextRunAt != nil && time.Until(*state.NextRunAt) > 20*time.Hour
	})
	if want := "users/team@example.org/mailFolders/inbox/messages"; g.subscription.Resource != want || g.subscription.ChangeType != "created" {
		t.Errorf("subscribed to %q, %q", g.subscription.Resource, g.subscription.ChangeType)
	}
	g.mu.Lock()
	g.mail = append(g.mail, "hello")
	g.mu.Unlock()
	announce := func(state string) int {
		status, _ := g.call("", fmt.Sprintf(`{"value": [{"subscriptionId": "s1", "changeType": "created", "clientState": %q}]}`, state))
		return status
	}
	if status := announce("guessed"); status != http.StatusUnauthorized {
		t.Errorf("the response to a forged call is %d", status)
	}
	if status := announce(g.subscription.ClientState); status != http.StatusOK {
		t.Errorf("the response is %d", status)
	}
	harness.Eventually(t, "the message has started a run", func() bool {
		var runs struct{ Data []struct{ ID string } }
		s.Expect(t, http.StatusOK, "GET", "/v1/runs?workflow_id="+workflow, nil).Decode(t, &runs)
		return len(runs.Data) == 1
	})
	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{"state": "paused"})
	harness.Eventually(t, "the subscription is removed", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.removed == 1
	})
}
