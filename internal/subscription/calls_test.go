package subscription_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/workflow"
)

// registered returns the URL and the secret that the shop was told.
func (e *env) registered() (address, secret string) {
	e.t.Helper()
	body := e.last()
	return fmt.Sprint(body["url"]), fmt.Sprint(body["secret"])
}

// Each event of a call starts one run of each trigger that wants it.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.run()
		w := e.workflow("new_order")
		synctest.Wait()
		address, secret := e.registered()
		const orders = `{"orders": [{"id": 1, "total": 5}, {"id": 2, "total": 6, "test": true}, {"id": 3, "total": 7}]}`
		for range 2 {
			if _, err := e.call(address, secret, orders); err != nil {
				t.Fatal(err)
			}
		}
		wantEqual(t, "runs", e.payloads(w), `[{"id":1,"total":5} {"id":3,"total":7}]`)

		for what, body := range map[string]string{
			"items that are no list":      `{"orders": 7}`,
			"an item without a key":       `{"orders": [{"total": 1}]}`,
			"an item without its total":   `{"orders": [{"id": 9, "total": "x"}]}`,
			"more events than one can be": `{"orders": [` + strings.TrimSuffix(strings.Repeat(`{"id": 4, "total": 1},`, 1001), ",") + `]}`,
		} {
			if _, err := e.call(address, secret, body); err != nil {
				t.Errorf("%s: the service is to call again: %v", what, err)
			}
			if e.trigger(w).Error == nil {
				t.Errorf("%s: nobody learns of it", what)
			}
		}
		wantEqual(t, "runs after calls that make no sense", len(e.payloads(w)), 2)

		e.full = true
		if _, err := e.call(address, secret, `{"orders": [{"id": 10, "total": 1}]}`); !fault.Is(err, fault.RunQueueFull) {
			t.Errorf("with a full queue: %v", err)
		}
		e.full = false
		if _, err := e.call(address, secret, `{"orders": [{"id": 10, "total": 1}]}`); err != nil {
			t.Error(err)
		}
		wantEqual(t, "runs after the service has called again", len(e.payloads(w)), 3)
	})
}

// Only the service starts runs. Its check of the URL starts none, and is answered before
// anything is verified.
func TestVerification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.run()
		w := e.workflow("new_order")
		synctest.Wait()
		address, secret := e.registered()
		got, err := e.call(address+"?challenge=abc", "", `{"orders": [{"id": 1, "total": 5}]}`)
		if err != nil || string(got.Body) != "abc" || !strings.HasPrefix(got.ContentType, "text/plain") {
			t.Errorf("the challenge is answered with %+v, %v", got, err)
		}
		if _, err := e.call(address+"?challenge="+strings.Repeat("x", 2000), secret, `{}`); err == nil {
			t.Error("a challenge of 2,000 bytes is repeated")
		}
		for _, guess := range []string{"", "guessed", secret[1:]} {
			if _, err := e.call(address, guess, `{"orders": [{"id": 1, "total": 5}]}`); !fault.Is(err, fault.Unauthorized) {
				t.Errorf("with the secret %q: %v", guess, err)
			}
		}
		if _, err := e.call(address[:len(address)-1], secret, `{}`); !fault.Is(err, fault.NotFound) {
			t.Errorf("with another token: %v", err)
		}
		wantEqual(t, "runs", e.payloads(w), "[]")
		wantEqual(t, "note", e.trigger(w).Error.Code, "signature_refused")
		e.setState(w.ID, workflow.Paused)
		synctest.Wait()
		if _, err := e.call(address, secret, `{"orders": [{"id": 1, "total": 5}]}`); !fault.Is(err, fault.NotFound) {
			t.Errorf("after a pause: %v", err)
		}
	})
}

// The secret with which an account signs is that of the connection.
func TestSecretOfTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.run()
		w := e.workflow("app_order")
		synctest.Wait()
		address := e.state(w).URL
		sign := func(key, body string) string {
			mac := hmac.New(sha256.New, []byte(key))
			mac.Write([]byte(body))
			return "sha256=" + hex.EncodeToString(mac.Sum(nil))
		}
		const body = `{"id": 1}`
		if _, err := e.call(address, "", body, "X-Hub-Signature-256", sign("another", body)); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("with another key: %v", err)
		}
		if _, err := e.call(address, "", body, "X-Hub-Signature-256", sign("s3cr3t-token", body)); err != nil {
			t.Error(err)
		}
		wantEqual(t, "runs", e.payloads(w), `[{"id":1}]`)
	})
}
