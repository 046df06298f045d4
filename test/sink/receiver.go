package sink

import (
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
)

// Receiver receives webhook deliveries. It verifies and records each of them.
type Receiver struct {
	*httptest.Server
	t        testing.TB
	mu       sync.Mutex
	secrets  map[string]string // by path
	received map[string][]Attempt
}

// Attempt is a delivery attempt that arrived.
type Attempt struct{ Path, Event, WebhookID, Body string }

// NewReceiver starts a receiver that runs until the end of the test.
func NewReceiver(t testing.TB) *Receiver {
	r := &Receiver{t: t, secrets: map[string]string{}, received: map[string][]Attempt{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender has disconnected
	}
	header := request.Header
	id := header.Get("X-Service-Delivery")
	l := Attempt{request.URL.Path, header.Get("X-Service-Event"), header.Get("Webhook-Id"), string(body)}
	r.mu.Lock()
	defer r.mu.Unlock()
	mac := hmac.New(sha256.New, []byte(r.secrets[l.Path]))
	mac.Write(body)
	if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); header.Get("X-Service-Signature") != want {
		r.t.Errorf("signature of delivery %s to %s is %q, want %q", id, l.Path, header.Get("X-Service-Signature"), want)
	}
	r.received[id] = append(r.received[id], l)
}

// Subscribe makes a webhook with this receiver and returns its id.
func (r *Receiver) Subscribe(c *harness.Client, path string, events ...string) string {
	r.t.Helper()
	var made struct {
		ID     string `json:"id"`
		Secret string `json:"signing_secret"`
	}
	r.mu.Lock() // no delivery may arrive before the secret is known
	defer r.mu.Unlock()
	c.Expect(r.t, 201, "POST", "/v1/webhooks", map[string]any{"url": r.URL + path, "events": events}).Decode(r.t, &made)
	r.secrets[path] = made.Secret
	return made.ID
}

// Attempts returns the attempts of a delivery that arrived.
func (r *Receiver) Attempts(deliveryID string) []Attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.received[deliveryID])
}

// Count returns how many deliveries arrived, and how many of them more than once.
func (r *Receiver) Count() (deliveries, repeated int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, attempts := range r.received {
		if len(attempts) > 1 {
			repeated++
		}
	}
	return len(r.received), repeated
}

// CheckDeliveries checks that every delivery in the tables has arrived, each time
// with the bytes of its event. It returns how many deliveries there are, and how
// many times one arrived again.
func CheckDeliveries(t testing.TB, db *sql.DB, receivers ...*Receiver) (deliveries, repeated int) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT d.id, d.status, e.id, e.type, e.body FROM deliveries d JOIN events e ON e.id = d.event_id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, status string
		var want Attempt
		if err := rows.Scan(&id, &status, &want.WebhookID, &want.Event, &want.Body); err != nil {
			t.Fatal(err)
		}
		var attempts []Attempt
		for _, r := range receivers {
			attempts = append(attempts, r.Attempts(id)...)
		}
		if len(attempts) == 0 || status != "delivered" {
			t.Errorf("INVARIANT: delivery %s arrived %d times and is %s", id, len(attempts), status)
		}
		for _, received := range attempts {
			if want.Path = received.Path; received != want {
				t.Errorf("INVARIANT: delivery %s arrived as %+v, want %+v", id, received, want)
			}
		}
		deliveries++
		repeated += max(0, len(attempts)-1)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return deliveries, repeated
}
