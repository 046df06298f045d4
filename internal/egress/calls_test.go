package egress_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/egress"
)

// Every request counts once, by its outcome; a response with any status is answered.
func TestCallsCountsOutcomes(t *testing.T) {
	t.Parallel()
	client := newClient(t, egress.Config{Policy: internet, Resolver: names{}})
	want := map[string]int64{"answered": 0}
	for _, code := range egress.Codes() {
		want[string(code)] = 0
	}
	if diff := cmp.Diff(want, client.Calls()); diff != "" {
		t.Errorf("before any call (-want +got):\n%s", diff)
	}
	server := serve(t, outside, hello)
	mustGet(t, client, server.URL)
	mustGet(t, client, server.URL)
	for _, url := range []string{"http://127.0.0.1/", "http://10.0.0.1/", "ftp://example.com/", "http://nowhere.example/", "example.com"} {
		if _, err := get(t, client, url); err == nil {
			t.Errorf("%s was reached", url)
		}
	}
	want["answered"], want["egress_denied"], want["connection_failed"], want["invalid_request"] = 2, 3, 1, 1
	if diff := cmp.Diff(want, client.Calls()); diff != "" {
		t.Errorf("after them (-want +got):\n%s", diff)
	}
}
