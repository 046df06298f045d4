package crash_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// receiver takes deliveries. It verifies each and remembers all.
type receiver struct {
	*httptest.Server
	t       *testing.T
	mu      sync.Mutex
	secrets map[string]string // by the path of the URL
	got     map[string][]letter
}

// letter is a delivery as it arrived.
type letter struct{ path, event, webhookID, body string }

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, secrets: map[string]string{}, got: map[string][]letter{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender is gone
	}
	header := request.Header
	id := header.Get("X-Service-Delivery")
	l := letter{request.URL.Path, header.Get("X-Service-Event"), header.Get("Webhook-Id"), string(body)}
	r.mu.Lock()
	defer r.mu.Unlock()
	mac := hmac.New(sha256.New, []byte(r.secrets[l.path]))
	mac.Write(body)
	if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); header.Get("X-Service-Signature") != want {
		r.t.Errorf("the signature of %s to %s is %q, want %q", id, l.path, header.Get("X-Service-Signature"), want)
	}
	r.got[id] = append(r.got[id], l)
}

// subscribe makes a webhook for this receiver and returns its id.
func (r *receiver) subscribe(c *harness.Client, path string, events ...string) string {
	r.t.Helper()
	var made struct {
		ID     string `json:"id"`
		Secret string `json:"signing_secret"`
	}
	r.mu.Lock() // nothing may arrive before its secret is known
	defer r.mu.Unlock()
	c.Expect(r.t, 201, "POST", "/v1/webhooks", map[string]any{"url": r.URL + path, "events": events}).Decode(r.t, &made)
	r.secrets[path] = made.Secret
	return made.ID
}

// letters returns what has arrived of a delivery.
func (r *receiver) letters(deliveryID string) []letter {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got[deliveryID])
}

// count is how many have arrived, and how many of them more than once.
func (r *receiver) count() (deliveries, repeated int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, letters := range r.got {
		if len(letters) > 1 {
			repeated++
		}
	}
	return len(r.got), repeated
}

// awaitNothing waits until no row is counted any more.
func awaitNothing(t *testing.T, dir, what, query string) {
	t.Helper()
	db := openTables(t, dir)
	for deadline := time.Now().Add(settleTime); ; {
		left := number(t, db, query)
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d %s after %v", left, what, settleTime)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func awaitDelivered(t *testing.T, s *harness.Server) {
	t.Helper()
	awaitNothing(t, s.Dir, "runs have not ended", "SELECT count(*) FROM run_queue")
	awaitNothing(t, s.Dir, "deliveries are pending", "SELECT count(*) FROM deliveries WHERE status = 'pending'")
}

// checkDeliveries holds what has arrived against the tables: every delivery has
// arrived, with the bytes of its event each time.
func (r *receiver) checkDeliveries(dir string) {
	r.t.Helper()
	db := openTables(r.t, dir)
	rows, err := db.QueryContext(r.t.Context(), `SELECT d.id, d.status, e.id, e.type, e.body FROM deliveries d JOIN events e ON e.id = d.event_id`)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, state, eventID, kind, body string
		if err := rows.Scan(&id, &state, &eventID, &kind, &body); err != nil {
			r.t.Fatal(err)
		}
		letters := r.letters(id)
		if len(letters) == 0 || state != "delivered" {
			r.t.Errorf("%s has arrived %d times and is %s", id, len(letters), state)
		}
		for _, l := range letters {
			if l != (letter{l.path, kind, eventID, body}) {
				r.t.Errorf("%s arrived as %+v, its event is %s %s %s", id, l, eventID, kind, body)
			}
		}
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
}

// path is a URL path that nothing else has.
func path(n int) string { return fmt.Sprintf("/hook/%d", n) }
