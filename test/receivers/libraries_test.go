package receivers_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/harness"
)

// The libraries that receivers use for GitHub's webhooks and for Standard Webhooks
// accept deliveries of the real service and reject forged ones.
func TestLibraries(t *testing.T) {
	t.Parallel()
	node(t) // it also needs the libraries
	url := harness.StartNode(t, "libraries.mjs")
	s := harness.Start(t, t.TempDir(), egress)
	secret := subscribe(t, s.Client, url+"/hook")
	call(t, http.MethodPut, url+"/secret", nil, secret)
	triggerEvents(t, s.Client)
	type verdict struct {
		Delivery, Event   string
		Octokit, Standard bool
	}
	var seen []verdict
	for deadline := time.Now().Add(harness.Timeout); len(seen) < len(kinds) && time.Now().Before(deadline); {
		_, text := call(t, http.MethodGet, url+"/seen", nil, "")
		if err := json.Unmarshal([]byte(text), &seen); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	got := map[string]bool{}
	for _, v := range seen {
		if !v.Octokit || !v.Standard || v.Delivery == "" {
			t.Errorf("a delivery was rejected: %+v", v)
		}
		got[v.Event] = true
	}
	if diff := cmp.Diff(map[string]bool{kinds[0]: true, kinds[1]: true, kinds[2]: true}, got); diff != "" {
		t.Errorf("events that arrived (-want +got):\n%s", diff)
	}

	genuine := deliveries(t)[0]
	call(t, http.MethodPut, url+"/secret", nil, genuine.Secret)
	if status, text := call(t, http.MethodPost, url+"/hook", genuine.Headers, string(genuine.Body)); status != http.StatusNoContent {
		t.Errorf("response to a genuine delivery is %d %s, want 204", status, text)
	}
	for name, c := range forgeries(genuine) {
		if status, text := call(t, http.MethodPost, url+"/hook", c.Headers, string(c.Body)); status != http.StatusUnauthorized {
			// GitHub's signature does not cover the time: one of the two must reject it.
			t.Errorf("%s: response is %d %s, want 401", name, status, text)
		}
	}
}

func call(t *testing.T, method, url string, headers map[string]string, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
