package harness_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
)

// response is a response of a test server.
type response struct {
	status int
	body   string
}

// respondWith starts a server that gives these responses, the last one again and again,
// and returns a client and the Idempotency-Keys of the requests so far.
func respondWith(t *testing.T, responses ...response) (c *harness.Client, keys *[]string) {
	t.Helper()
	keys = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next := responses[min(len(*keys), len(responses)-1)]
		*keys = append(*keys, r.Header.Get("Idempotency-Key"))
		w.WriteHeader(next.status)
		_, _ = w.Write([]byte(next.body))
	}))
	t.Cleanup(server.Close)
	return harness.NewClient(server.URL, ""), keys
}

func TestRepeatsRequestsWhileUnavailable(t *testing.T) {
	t.Parallel()
	var (
		busy     = response{503, `{"error":{"code":"unavailable","message":"the store is busy; try again"}}`}
		unknown  = response{503, `{"error":{"code":"unavailable","message":"it is not known whether the change was saved"}}`}
		readOnly = response{503, `{"error":{"code":"storage_read_only","message":"the disk is full"}}`}
		inFlight = response{409, `{"error":{"code":"idempotency_in_progress"}}`}
		created  = response{201, `{}`}
	)
	key := []string{"idempotency-key", "k"}
	for name, tc := range map[string]struct {
		method    string
		headers   []string
		responses []response
		status    int
		requests  int
	}{
		"nothing was changed":          {"POST", nil, []response{busy, busy, created}, 201, 3},
		"an unknown outcome":           {"POST", nil, []response{unknown, created}, 503, 1},
		"an unknown outcome, with key": {"POST", key, []response{unknown, inFlight, created}, 201, 3},
		"an unknown outcome of a PUT":  {"PUT", nil, []response{unknown, created}, 201, 2},
		"a lasting reason":             {"POST", key, []response{readOnly, created}, 503, 1},
		"another request in progress":  {"POST", key, []response{inFlight, created}, 409, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, keys := respondWith(t, tc.responses...)
			got, err := c.DoUntilAvailable(t.Context(), tc.method, "/", nil, tc.headers...)
			if err != nil || got.Status != tc.status || len(*keys) != tc.requests {
				t.Errorf("status %d after %d requests, %v; want %d after %d", got.Status, len(*keys), err, tc.status, tc.requests)
			}
			for _, sent := range *keys {
				if sent != (*keys)[0] {
					t.Errorf("the keys are %q", *keys)
				}
			}
		})
	}
	c, keys := respondWith(t, busy)
	if c.Expect(t, 503, "GET", "/", nil); len(*keys) != 1 {
		t.Errorf("%d requests although the response was expected", len(*keys))
	}
}
