package services_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// watchedDrive stands for Google Drive with files that change, and a channel that announces it.
type watchedDrive struct {
	mu      sync.Mutex
	names   []string // of the files that have changed, in order
	polls   int
	channel channel
	stopped int
}

type channel struct{ ID, Address, Token string }

func (d *watchedDrive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Host == "oauth2.googleapis.com":
		fmt.Fprint(w, `{"access_token": "ya29.token", "token_type": "Bearer", "expires_in": 3600}`)
	case strings.HasSuffix(r.URL.Path, "/changes/startPageToken"):
		fmt.Fprintf(w, `{"startPageToken": "%d"}`, len(d.names))
	case strings.HasSuffix(r.URL.Path, "/changes/watch"):
		_ = json.NewDecoder(r.Body).Decode(&d.channel) // the test compares it
		fmt.Fprintf(w, `{"id": %q, "resourceId": "res", "expiration": "%d"}`, d.channel.ID, time.Now().Add(6*24*time.Hour).UnixMilli())
	case strings.HasSuffix(r.URL.Path, "/channels/stop"):
		d.stopped++
		w.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(r.URL.Path, "/changes"):
		d.polls++
		var since int
		_, _ = fmt.Sscan(r.URL.Query().Get("pageToken"), &since)
		var changes []string
		for n := since; n < len(d.names); n++ {
			at := time.Now().UTC().Format(time.RFC3339Nano)
			changes = append(changes, fmt.Sprintf(`{"fileId": "f%d", "file": {"id": "f%d", "name": %q, "mimeType": "text/plain", "createdTime": %q, "modifiedTime": %q}}`, n, n, d.names[n], at, at))
		}
		fmt.Fprintf(w, `{"newStartPageToken": "%d", "changes": [%s]}`, len(d.names), strings.Join(changes, ","))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (d *watchedDrive) opened() (channel, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.channel, d.channel.Address != ""
}

func (d *watchedDrive) add(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names = append(d.names, name)
}

// A call beside a poll makes the poll due at once: it finds what is new, although it was to
// look the next day.
func TestCallMakesPollDue(t *testing.T) {
	t.Parallel()
	d := &watchedDrive{}
	s := newInternet(t, d.ServeHTTP).start(t)
	connectGoogle(t, s.Client, "google_drive")
	workflow := flow.Define(t, s.Client, flow.Set("name", "${{ trigger.payload.name }}"))
	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{
		"state": "active", "triggers": []any{map[string]any{"id": "files", "type": "google_drive.file_changed", "connection": "office", "every": "24h"}},
	})
	harness.Eventually(t, "the channel is open", func() bool { _, ok := d.opened(); return ok })
	trigger := func() (state struct {
		NextRunAt    *time.Time `json:"next_run_at"`
		Subscription *struct {
			Status    string
			ExpiresAt *time.Time `json:"expires_at"`
		}
	}) {
		var list struct{ Data []json.RawMessage }
		s.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+workflow+"/triggers", nil).Decode(t, &list)
		if err := json.Unmarshal(list.Data[0], &state); err != nil {
			t.Fatal(err)
		}
		return state
	}
	harness.Eventually(t, "the first poll is over, and the next one is due the next day", func() bool {
		state := trigger()
		return state.NextRunAt != nil && time.Until(*state.NextRunAt) > 20*time.Hour && state.Subscription.Status == "active"
	})
	if ends := trigger().Subscription.ExpiresAt; ends == nil || time.Until(*ends) < 5*24*time.Hour {
		t.Errorf("the channel ends at %v", ends)
	}
	opened, _ := d.opened()
	call := func(token string) int {
		got, err := s.With("").Open(t.Context(), "POST", flow.PathFrom(t, opened.Address, "/service-hooks/"), http.NoBody, "X-Goog-Channel-Token", token, "X-Goog-Resource-State", "change")
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		return got.StatusCode
	}
	d.add("report.txt")
	if status := call("guessed"); status != http.StatusUnauthorized {
		t.Errorf("the response to a forged call is %d", status)
	}
	for range 5 { // Google announces a change several times
		if status := call(opened.Token); status != http.StatusOK {
			t.Errorf("the response is %d", status)
		}
	}
	runs := func() int {
		var list struct{ Data []struct{ ID string } }
		s.Expect(t, http.StatusOK, "GET", "/v1/runs?workflow_id="+workflow, nil).Decode(t, &list)
		return len(list.Data)
	}
	harness.Eventually(t, "the file has started a run", func() bool { return runs() == 1 })
	harness.Eventually(t, "the poll is due the next day again", func() bool {
		state := trigger()
		return state.NextRunAt != nil && time.Until(*state.NextRunAt) > 20*time.Hour
	})
	if n := runs(); n != 1 {
		t.Errorf("INVARIANT: one file has started %d runs", n)
	}
	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{"state": "paused"})
	harness.Eventually(t, "the channel is stopped", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.stopped == 1
	})
}
