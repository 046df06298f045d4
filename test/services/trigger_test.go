package services_test

import (
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

// mailbox stands for Gmail with messages whose ids are their place in the history. A history
// has two of them at once.
type mailbox struct {
	mu       sync.Mutex
	messages int
	asked    []int // where histories begin

	// held is closed when the history is asked for after hold was set; the answer comes once
	// released is closed.
	hold           bool
	held, released chan struct{}
}

func (m *mailbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, id, isMessage := strings.Cut(r.URL.Path, "/gmail/v1/users/me/messages/")
	switch {
	case r.Host == "oauth2.googleapis.com":
		fmt.Fprint(w, `{"access_token": "ya29.token", "token_type": "Bearer", "expires_in": 3600}`)
	case r.Host != "gmail.googleapis.com" || r.Header.Get("Authorization") != "Bearer ya29.token":
		w.WriteHeader(http.StatusUnauthorized)
	case strings.HasSuffix(r.URL.Path, "/profile"):
		m.mu.Lock()
		defer m.mu.Unlock()
		fmt.Fprintf(w, `{"historyId": "%d"}`, m.messages)
	case strings.HasSuffix(r.URL.Path, "/history"):
		m.history(w, r.URL.Query().Get("startHistoryId"))
	case isMessage:
		fmt.Fprintf(w, `{"id": %q, "labelIds": ["INBOX"], "internalDate": "1795000000000", "payload": {"mimeType": "text/plain", "headers": [{"name": "Subject", "value": "Message %s"}], "body": {"data": "SGk"}}}`, id, id)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (m *mailbox) history(w http.ResponseWriter, start string) {
	m.mu.Lock()
	wait := m.hold
	if m.hold = false; wait {
		close(m.held)
	}
	m.mu.Unlock()
	if wait {
		<-m.released
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	since, _ := strconv.Atoi(start) // the test compares what was asked
	m.asked = append(m.asked, since)
	var changes []string
	for id := since + 1; id <= min(since+2, m.messages); id++ {
		changes = append(changes, fmt.Sprintf(`{"id": "%d", "messagesAdded": [{"message": {"id": "m%d"}}]}`, id, id))
	}
	more := ""
	if since+2 < m.messages {
		more = `"nextPageToken": "next", `
	}
	fmt.Fprintf(w, `{%s"historyId": "%d", "history": [%s]}`, more, m.messages, strings.Join(changes, ","))
}

func (m *mailbox) receive(count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages += count
}

// Each message that arrives starts one run, also if the server dies while it reads them, and
// what was there before starts none.
func TestTrigger(t *testing.T) {
	t.Parallel()
	mail := &mailbox{messages: 3, held: make(chan struct{}), released: make(chan struct{})}
	network, dir := newInternet(t, mail.ServeHTTP), t.TempDir()
	s := network.startIn(t, dir)
	connectGoogle(t, s.Client, "gmail")
	workflow := flow.Define(t, s.Client, flow.Set("note", "${{ trigger.payload.subject }}"))
	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{
		"state":    "active",
		"triggers": []any{map[string]any{"id": "mail", "type": "gmail.new_message", "connection": "office", "every": "10s"}},
	})
	subjects := func() []string {
		var runs struct {
			Data []struct {
				ID      string
				Trigger struct{ Type string }
			}
		}
		s.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+workflow+"/runs?limit=100", nil).Decode(t, &runs)
		out := []string{}
		for _, r := range runs.Data {
			var run struct {
				Trigger struct {
					Type    string
					Payload struct{ Subject, Text string }
				}
			}
			s.Expect(t, http.StatusOK, "GET", "/v1/runs/"+r.ID, nil).Decode(t, &run)
			if run.Trigger.Type != "gmail.new_message" || run.Trigger.Payload.Text != "Hi" {
				t.Errorf("a run was started by %+v", run.Trigger)
			}
			out = append(out, run.Trigger.Payload.Subject)
		}
		slices.Sort(out)
		return out
	}
	harness.Eventually(t, "the first history is read", func() bool {
		mail.mu.Lock()
		defer mail.mu.Unlock()
		return len(mail.asked) > 0
	})
	mail.receive(5) // three histories
	first := []string{"Message m4", "Message m5", "Message m6", "Message m7", "Message m8"}
	harness.Eventually(t, "the messages have started runs", func() bool { return slices.Equal(subjects(), first) })

	mail.mu.Lock()
	mail.hold = true
	mail.messages += 1
	mail.mu.Unlock()
	select {
	case <-mail.held:
	case <-t.Context().Done():
	}
	s.Kill(t)
	close(mail.released)
	key := s.Key
	s = network.startIn(t, dir)
	s.Key = key
	harness.Eventually(t, "the last message has started a run", func() bool { return slices.Contains(subjects(), "Message m9") })
	if got, want := subjects(), append(first, "Message m9"); !slices.Equal(got, want) {
		t.Errorf("INVARIANT: runs for %v, want %v", got, want)
	}
	var triggers struct {
		Data []struct {
			Type      string
			NextRunAt *string `json:"next_run_at"`
			LastError any     `json:"last_error"`
		}
	}
	s.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+workflow+"/triggers", nil).Decode(t, &triggers)
	if one := triggers.Data[0]; one.Type != "gmail.new_message" || one.NextRunAt == nil || one.LastError != nil {
		t.Errorf("the trigger is %+v", one)
	}
	if strings.Contains(s.Log(), "ya29.token") {
		t.Error("the log has the token")
	}
}
