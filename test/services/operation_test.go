package services_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const token = "123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"

// telegram stands for the Bot API. It rejects the first message as one too many.
type telegram struct {
	mu       sync.Mutex
	messages []map[string]any
}

func (b *telegram) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Host != "api.telegram.org" || !strings.HasPrefix(r.URL.Path, "/bot"+token+"/"):
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"ok": false, "error_code": 401, "description": "Unauthorized"}`)
	case strings.HasSuffix(r.URL.Path, "/getMe"):
		fmt.Fprint(w, `{"ok": true, "result": {"id": 42, "username": "my_bot"}}`)
	case strings.HasSuffix(r.URL.Path, "/sendMessage"):
		b.mu.Lock()
		defer b.mu.Unlock()
		var message map[string]any
		_ = json.Unmarshal(body, &message) // the test compares it
		if b.messages = append(b.messages, message); len(b.messages) == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"ok": false, "error_code": 429, "description": "Too Many Requests: retry after 1", "parameters": {"retry_after": 1}}`)
			return
		}
		fmt.Fprintf(w, `{"ok": true, "result": {"message_id": 7, "text": %q, "note": "/bot%s/"}}`, message["text"], token)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"ok": false, "error_code": 404, "description": "Not Found"}`)
	}
}

// A step sends a message with a connection: the service gets the credential in the path of
// its own host, the step is retried when the service says so, and nothing that is stored or
// shown has the credential, even if the service repeats it.
func TestOperation(t *testing.T) {
	t.Parallel()
	bot := &telegram{}
	s := newInternet(t, bot.ServeHTTP).start(t)
	var connection struct {
		ID      string
		Status  string
		Account *string
	}
	s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
		"name": "my-bot", "integration": "telegram", "auth": "api_key", "fields": map[string]any{"token": token},
	}).Decode(t, &connection)
	var tested struct {
		OK      bool
		Problem *string
	}
	s.Expect(t, http.StatusOK, "POST", "/v1/connections/"+connection.ID+"/test", nil).Decode(t, &tested)
	if !tested.OK {
		t.Fatalf("the test of the connection failed: %v", *tested.Problem)
	}
	step := flow.Step("send", "telegram.send_message", `{"chat": "@news", "text": "Hello ${{ trigger.payload.name }}"}`)
	step["connection"] = "my-bot"
	workflow := flow.Define(t, s.Client, step)
	var run struct {
		ID     string
		Status string
		Steps  []struct {
			Status  string
			Attempt int
			Output  map[string]any
		}
	}
	s.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{"payload": map[string]any{"name": "Ann"}}).Decode(t, &run)
	var shown harness.Response
	harness.Eventually(t, "the run ends", func() bool {
		shown = s.Expect(t, http.StatusOK, "GET", "/v1/runs/"+run.ID, nil)
		shown.Decode(t, &run)
		return run.Status == "succeeded" || run.Status == "failed"
	})
	if run.Status != "succeeded" || len(run.Steps) != 1 || run.Steps[0].Attempt != 2 || run.Steps[0].Output["text"] != "Hello Ann" {
		t.Fatalf("the run is %+v", run)
	}
	if strings.Contains(string(shown.Body), token) {
		t.Error("the run shows the token")
	}
	bot.mu.Lock()
	defer bot.mu.Unlock()
	if len(bot.messages) != 2 || bot.messages[1]["chat_id"] != "@news" || bot.messages[1]["text"] != "Hello Ann" {
		t.Errorf("the service received %v", bot.messages)
	}
}
