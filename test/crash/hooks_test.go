package crash_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

type triggerBody struct {
	ID  string `json:"id"`
	URL string `json:"url"`
}

// hookOf makes an active workflow whose webhook knows calls by their key, and
// returns its id and the path of its address.
func hookOf(t *testing.T, s *harness.Server, steps ...map[string]any) (id, path string) {
	t.Helper()
	id = define(t, s.Client, nil, steps...)
	s.Expect(t, 200, "PATCH", "/v1/workflows/"+id, map[string]any{
		"state":    "active",
		"triggers": []map[string]any{{"id": "hook", "type": "webhook", "rate": 1_000_000, "dedupe": "${{ trigger.payload.key }}"}},
	})
	return id, addressOf(t, s, id)
}

func addressOf(t *testing.T, s *harness.Server, workflow string) string {
	t.Helper()
	var list struct {
		Data []triggerBody `json:"data"`
	}
	s.Expect(t, 200, "GET", "/v1/workflows/"+workflow+"/triggers", nil).Decode(t, &list)
	return pathIn(t, list.Data[0].URL, "/hooks/")
}

// pathIn is the path of an address, which begins with a prefix.
func pathIn(t *testing.T, address, prefix string) string {
	t.Helper()
	_, rest, found := strings.Cut(address, prefix)
	if !found {
		t.Fatalf("%s is not in %q", prefix, address)
	}
	return prefix + rest
}

// A call was written and the process died before it could say so. The sender
// tries again, with the same key, and gets the run that it had started.
func TestCallThatWasNotAnswered(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before_accept_commit", "after_accept_commit"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := harness.Start(t, t.TempDir())
			_, path := hookOf(t, s, map[string]any{"id": "set", "uses": "data.set", "with": map[string]any{"values": map[string]any{"n": 1}}})
			s.Stop(t)
			for n := range 4 {
				dying := spawn(t, s.Dir, point+":kill")
				call := map[string]any{"key": fmt.Sprintf("delivery-%d", n)}
				if answer, err := dying.Do(t.Context(), "POST", path, call); err == nil {
					t.Fatalf("the call was answered with %d %s", answer.Status, answer.Body)
				}
				awaitDeath(t, dying)
				written := texts(t, checkFile(t, s.Dir), "SELECT id FROM runs WHERE payload = $1", fmt.Sprintf(`{"key":"%v"}`, call["key"]))
				if durable := point == "after_accept_commit"; durable != (len(written) == 1) {
					t.Fatalf("%d runs were written before the death", len(written))
				}
				now := restart(t, s)
				var first, second struct {
					RunID     string `json:"run_id"`
					Duplicate bool   `json:"duplicate"`
				}
				now.Expect(t, 202, "POST", path, call).Decode(t, &first)
				now.Expect(t, 202, "POST", path, call).Decode(t, &second)
				if len(written) == 1 && (first.RunID != written[0] || !first.Duplicate) || second.RunID != first.RunID || !second.Duplicate {
					t.Errorf("the call was answered with %+v and %+v; written was %v", first, second, written)
				}
				if end := awaitEnd(t, now.Client, first.RunID, 20*time.Second); end.Status != succeeded {
					t.Errorf("run %s is %s", end.ID, end.Status)
				}
				now.Stop(t)
				if runs := number(t, checkFile(t, s.Dir), "SELECT count(*) FROM runs"); runs != n+1 {
					t.Errorf("%d runs after %d calls", runs, n+1)
				}
			}
			checkTables(t, checkFile(t, s.Dir), "")
		})
	}
}

// Word is sent, and the process dies before it is written that it was. It is sent
// again; the link that went out first answers the step all the same.
func TestLinkOfALifeBefore(t *testing.T) {
	t.Parallel()
	sent := make(chan string, 10)
	outside := receiveBodies(t, sent)
	s := harness.Start(t, t.TempDir(), egress)
	id := define(t, s.Client, nil, map[string]any{"id": "ask", "uses": "flow.approval", "with": map[string]any{
		"notify": map[string]any{"url": outside, "body": "${{ links.ask.callback }}"},
	}})
	s.Stop(t)
	dying := spawn(t, s.Dir, "after_effect:kill")
	dying.Key = s.Key
	_, _ = dying.Do(t.Context(), "POST", "/v1/workflows/"+id+"/runs", nil) // it may die before it answers
	first := <-sent
	awaitDeath(t, dying)
	now := restart(t, s, egress)
	second := <-sent
	path := pathIn(t, first, "/callback/")
	if pathIn(t, second, "/callback/") != path {
		t.Errorf("the links differ: %s and %s", first, second)
	}
	now.Expect(t, 200, "POST", path, map[string]any{"job": 17})
	run := texts(t, checkFile(t, s.Dir), "SELECT id FROM runs")
	if end := awaitEnd(t, now.Client, run[0], 20*time.Second); end.Status != succeeded {
		t.Errorf("the run is %s: %+v", end.Status, end.Error)
	}
}

// receiveBodies is a server elsewhere that tells what it is sent.
func receiveBodies(t *testing.T, into chan<- string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		into <- string(body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}
