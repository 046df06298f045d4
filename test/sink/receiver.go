package sink

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
)

// Receiver takes deliveries. It verifies each and remembers all.
type Receiver struct {
	*httptest.Server
	t       testing.TB
	mu      sync.Mutex
	secrets map[string]string // by the path of the URL
	got     map[string][]Letter
}

// Letter is a delivery as it arrived.
type Letter struct{ Path, Event, WebhookID, Body string }

// NewReceiver starts a receiver that lasts as long as the test.
func NewReceiver(t testing.TB) *Receiver {
	r := &Receiver{t: t, secrets: map[string]string{}, got: map[string][]Letter{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender is gone
	}
	header := request.Header
	id := header.Get("X-Service-Delivery")
	l := Letter{request.URL.Path, header.Get("X-Service-Event"), header.Get("Webhook-Id"), string(body)}
	r.mu.Lock()
	defer r.mu.Unlock()
	mac := hmac.New(sha256.New, []byte(r.secrets[l.Path]))
	mac.Write(body)
	if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); header.Get("X-Service-Signature") != want {
		r.t.Errorf("the signature of %s to %s is %q, want %q", id, l.Path, header.Get("X-Service-Signature"), want)
	}
	r.got[id] = append(r.got[id], l)
}

// Subscribe makes a webhook for this receiver and returns its id.
func (r *Receiver) Subscribe(c *harness.Client, path string, events ...string) string {
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

// Letters returns what has arrived of a delivery.
func (r *Receiver) Letters(deliveryID string) []Letter {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got[deliveryID])
}

// Count is how many have arrived, and how many of them more than once.
func (r *Receiver) Count() (deliveries, repeated int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, letters := range r.got {
		if len(letters) > 1 {
			repeated++
		}
	}
	return len(r.got), repeated
}
