package subscription_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/subscription"
)

// shared is an installation whose connection was made with an app that others share.
type shared struct {
	*env
	url string
}

func newShared(t *testing.T) shared {
	t.Helper()
	e := newEnv(t)
	e.reconnect("my-shop", "seller-1")
	service := subscription.NewService(e.deps)
	hooks, err := service.HooksOfApp(t.Context(), e.app.WorkspaceID, e.app.Integration, e.app.Auth)
	e.must(err)
	urls, err := service.URLsOfApp(t.Context(), e.app.App, hooks)
	e.must(err)
	e.run()
	return shared{e, urls[0].URL}
}

// sold makes a call for the app.
func (s shared) sold(body string, headers ...string) {
	s.t.Helper()
	mac := hmac.New(sha256.New, []byte("s3cr3t-of-the-app"))
	mac.Write([]byte(body))
	if _, err := s.call(s.url, "", body, append(headers, "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))...); err != nil {
		s.t.Fatal(err)
	}
}

// The events of a call start runs for their account, each once, with the headers of the call.
func TestAppCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		w := s.workflow("shared_order")
		synctest.Wait()
		const body = `{"orders": [{"id": 1, "seller": "seller-1"}, {"id": 2, "seller": "seller-2"}, {"id": 3}, {"id": 4, "seller": "seller-1"}]}`
		s.sold(body)
		s.sold(body)
		s.sold(`{"orders": [{"id": 5, "seller": "seller-1"}]}`, "X-Test", "1")
		synctest.Wait()
		wantEqual(t, "runs", s.payloads(w), `[{"id":1,"seller":"seller-1"} {"id":4,"seller":"seller-1"}]`)
	})
}

// A call that finds the queue of a workspace full was accepted all the same: its runs start
// when there is room.
func TestAppCallWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		w := s.workflow("shared_order")
		synctest.Wait()
		s.full = true
		s.sold(`{"orders": [{"id": 1, "seller": "seller-1"}]}`)
		time.Sleep(10 * time.Minute)
		wantEqual(t, "runs while the queue is full", s.payloads(w), "[]")
		s.full = false
		time.Sleep(time.Minute)
		wantEqual(t, "runs when there is room", s.payloads(w), `[{"id":1,"seller":"seller-1"}]`)
		s.full = true
		s.sold(`{"orders": [{"id": 2, "seller": "seller-1"}]}`)
		time.Sleep(2 * time.Hour)
		s.full = false
		time.Sleep(2 * time.Hour)
		wantEqual(t, "runs of a call that is too old", s.payloads(w), `[{"id":1,"seller":"seller-1"}]`)
		if next, err := s.store.Subscriptions.NextAppCall(t.Context()); next != nil || err != nil {
			t.Errorf("a call is still kept: %v %v", next, err)
		}
	})
}
