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
	"github.com/stepmill/stepmill/test/lane"
)

// mailbox stands for Gmail with messages whose ids are their place in the history. A history
// has two of them at once.
type mailbox struct {
	mu       sync.Mutex
	messages int
	asked    []int // where histories begin

	// hold is set to hold the next answer with a history.
	hold           bool
	held, released chan struct{}
}

// holdNext holds the next answer with a history. The first channel is closed when it is
// asked for; the second one releases the answer.
func (m *mailbox) holdNext() (held <-chan struct{}, released chan<- struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hold, m.held, m.released = true, make(chan struct{}), make(chan struct{})
	return m.held, m.released
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
	wait, released := m.hold, m.released
	if m.hold = false; wait {
		close(m.held)
	}
	m.mu.Unlock()
	if wait {
		<-released
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

// Each message that arrives starts one run, also if the server dies, and what was there
// before starts none.
func TestTrigger(t *testing.T) {
	t.Parallel()
	mail := &mailbox{messages: 3}
	server := mail.watch(t)
	mail.receive(5) // three histories
	server.awaitRuns(t, 4, 8)
	server.restart(t)
	mail.receive(1)
	server.awaitRuns(t, 4, 9)
	var triggers struct {
		Data []struct {
			Type      string
			NextRunAt *string `json:"next_run_at"`
			LastError any     `json:"last_error"`
		}
	}
	server.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+server.workflow+"/triggers", nil).Decode(t, &triggers)
	if one := triggers.Data[0]; one.Type != "gmail.new_message" || one.NextRunAt == nil || one.LastError != nil {
		t.Errorf("the trigger is %+v", one)
	}
	if strings.Contains(server.Log(), "ya29.token") {
		t.Error("the log has the token")
	}
}

// The server dies while a poll waits for its answer. The poll is claimed for two minutes,
// after which another node or the next process looks again.
func TestTriggerInterrupted(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	mail := &mailbox{messages: 3}
	server := mail.watch(t)
	held, released := mail.holdNext()
	mail.receive(1)
	select {
	case <-held:
	case <-t.Context().Done():
	}
	server.restart(t)
	close(released)
	server.awaitRuns(t, 4, 4)
}

// mailServer is a server with a workflow that runs for each message.
type mailServer struct {
	*harness.Server
	network       *internet
	dir, workflow string
}

// watch starts a server whose first poll has seen the messages that are there.
func (m *mailbox) watch(t *testing.T) *mailServer {
	t.Helper()
	s := &mailServer{network: newInternet(t, m.ServeHTTP), dir: t.TempDir()}
	s.Server = s.network.startIn(t, s.dir)
	connectGoogle(t, s.Client, "gmail")
	s.workflow = flow.Define(t, s.Client, flow.Set("note", "${{ trigger.payload.subject }}"))
	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+s.workflow, map[string]any{
		"state":    "active",
		"triggers": []any{map[string]any{"id": "mail", "type": "gmail.new_message", "connection": "office", "every": "10s"}},
	})
	harness.Eventually(t, "the first history is read", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.asked) > 0
	})
	return s
}

// restart kills the server and starts it again.
func (s *mailServer) restart(t *testing.T) {
	t.Helper()
	key := s.Key
	s.Kill(t)
	s.Server = s.network.startIn(t, s.dir)
	s.Key = key
}

// awaitRuns waits until there are runs for the messages of a range, and checks that there
// are no others.
func (s *mailServer) awaitRuns(t *testing.T, from, to int) {
	t.Helper()
	var want []string
	for n := from; n <= to; n++ {
		want = append(want, fmt.Sprintf("Message m%d", n))
	}
	var got []string
	harness.Eventually(t, "the messages have started runs", func() bool {
		got = s.subjects(t)
		return len(got) >= len(want)
	})
	if !slices.Equal(got, want) {
		t.Errorf("INVARIANT: runs for %v, want %v", got, want)
	}
}

// subjects returns those of the messages that have started runs.
func (s *mailServer) subjects(t *testing.T) []string {
	t.Helper()
	var runs struct{ Data []struct{ ID string } }
	s.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+s.workflow+"/runs?limit=100", nil).Decode(t, &runs)
	var out []string
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
