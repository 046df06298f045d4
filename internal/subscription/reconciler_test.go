package subscription_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/workflow"
)

// ending returns an answer with the end of a registration, a duration from now.
func ending(id string, in time.Duration) string {
	return fmt.Sprintf(`{"id": %q, "ends": %q}`, id, time.Now().Add(in).UTC().Format(time.RFC3339))
}

// A registration is renewed after half of its time. If the service has forgotten it, there
// is a new one.
func TestRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.respond(func(request) (int, string) { return http.StatusOK, ending("h1", 10*time.Hour) })
		e.run()
		w := e.workflow("new_order")
		synctest.Wait()
		wantEqual(t, "status of the default", e.last()["status"], "paid")
		wantEqual(t, "asked", e.asked(), "[POST /hooks]")
		wantEqual(t, "status", e.state(w).Status, subscription.Active)
		wantEqual(t, "expires in", time.Until(*e.state(w).ExpiresAt).Round(time.Hour), 10*time.Hour)

		time.Sleep(4 * time.Hour)
		synctest.Wait()
		wantEqual(t, "asked before half of the time", e.asked(), "[]")
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		wantEqual(t, "asked after it", e.asked(), "[POST /hooks/h1/renew]")
		wantEqual(t, "expires in", time.Until(*e.state(w).ExpiresAt).Round(time.Hour), 10*time.Hour)

		e.respond(func(r request) (int, string) {
			if strings.HasSuffix(r.path, "/renew") {
				return http.StatusNotFound, `{}`
			}
			return http.StatusOK, ending("h2", 10*time.Hour)
		})
		time.Sleep(6 * time.Hour)
		synctest.Wait()
		wantEqual(t, "asked about what is forgotten", e.asked(), "[POST /hooks/h1/renew POST /hooks]")
		e.setState(w.ID, workflow.Paused)
		synctest.Wait()
		wantEqual(t, "asked after a pause", e.asked(), "[DELETE /hooks/h2]")
		wantEqual(t, "state", e.state(w), subscription.State{})
	})
}

// A registration that cannot be renewed is replaced by one with another id.
func TestReplaceExpiring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		made := 0
		var ids []any
		e.respond(func(r request) (int, string) {
			if r.method == http.MethodPost {
				made++
				ids = append(ids, r.body["id"])
			}
			return http.StatusOK, ending(fmt.Sprintf("c%d", made), 2*time.Hour)
		})
		e.run()
		e.workflow("short_order")
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		wantEqual(t, "asked", e.asked(), "[POST /channels DELETE /channels/c1 POST /channels]")
		if len(ids) != 2 || ids[0] == ids[1] {
			t.Errorf("the registrations have the ids %v", ids)
		}
	})
}

// A service that cannot be told is asked again, with growing pauses, as long as there is a
// trigger, and forgotten after a while if there is none.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.respond(func(r request) (int, string) {
			return http.StatusBadRequest, fmt.Sprintf(`{"message": "s3cr3t-token cannot call %v with %v"}`, r.body["url"], r.body["secret"])
		})
		e.run()
		w := e.workflow("new_order")
		synctest.Wait()
		address, secret := e.registered()
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		wantEqual(t, "attempts in the first minute", len(e.asked()), 3) // after 0, 10 and 30 seconds
		state := e.state(w)
		wantEqual(t, "status", state.Status, subscription.Failing)
		if state.Error == nil || !strings.Contains(state.Error.Message, "cannot call") {
			t.Fatalf("the error is %+v", state.Error)
		}
		for _, hidden := range []string{"s3cr3t-token", secret, address} {
			if strings.Contains(state.Error.Message, hidden) {
				t.Errorf("the error has %q: %s", hidden, state.Error.Message)
			}
		}
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		if n := len(e.asked()); n < 10 || n > 20 {
			t.Errorf("there were %d attempts in ten hours", n)
		}
		e.respond(func(request) (int, string) { return http.StatusOK, `{"id": "h1"}` })
		e.reconnect("my-shop", "ada")
		synctest.Wait()
		wantEqual(t, "asked after somebody reconnected", e.asked(), "[POST /hooks]")
		wantEqual(t, "status", e.state(w).Status, subscription.Active)

		e.respond(func(request) (int, string) { return http.StatusInternalServerError, `{}` })
		e.setState(w.ID, workflow.Paused)
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		wantEqual(t, "attempts to remove it", len(e.asked()), 8)
		due, err := e.store.Subscriptions.NextSubscription(t.Context(), "node_1", clock.Steady())
		if due != nil || err != nil {
			t.Errorf("it is still due at %v, %v", due, err)
		}
	})
}

// A registration with an unknown outcome is looked for before it is repeated.
func TestUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.respond(func(r request) (int, string) {
			if r.method == http.MethodPost {
				return http.StatusBadGateway, `{}`
			}
			return http.StatusOK, `{"found": {"id": "h7"}}`
		})
		e.run()
		w := e.workflow("new_order")
		time.Sleep(15 * time.Second)
		synctest.Wait()
		wantEqual(t, "asked", e.asked(), "[POST /hooks GET /find]")
		wantEqual(t, "status", e.state(w).Status, subscription.Active)
		e.setState(w.ID, workflow.Paused)
		synctest.Wait()
		wantEqual(t, "asked after a pause", e.asked(), "[DELETE /hooks/h7]")
	})
}

// With another account or another public URL, the service is told anew. What the earlier
// account knows is worth nothing then.
func TestElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.run()
		w := e.workflow("new_order")
		synctest.Wait()
		first := e.last()
		e.asked()
		e.reconnect("my-shop", "ada")
		synctest.Wait()
		wantEqual(t, "asked after the same account reconnected", e.asked(), "[]")
		e.reconnect("my-shop", "bob")
		synctest.Wait()
		second := e.last()
		wantEqual(t, "asked after another one did", e.asked(), "[DELETE /hooks/h1 POST /hooks]")
		if second["url"] == first["url"] || second["secret"] == first["secret"] {
			t.Errorf("the account is told what the earlier one knows: %v", second)
		}
		if _, err := e.call(fmt.Sprint(first["url"]), fmt.Sprint(first["secret"]), `{"orders": [{"id": 1, "total": 1}]}`); err == nil {
			t.Error("the URL of the earlier account still works")
		}
		e.base = "https://two.example"
		if err := e.store.Subscriptions.RecheckSubscriptions(t.Context(), e.base, time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		third := e.last()
		wantEqual(t, "asked with another public URL", e.asked(), "[DELETE /hooks/h1 POST /hooks]")
		if !strings.HasPrefix(fmt.Sprint(third["url"]), "https://two.example"+subscription.Path) {
			t.Errorf("the URL is %v", third["url"])
		}
		wantEqual(t, "status", e.state(w).Status, subscription.Active)
	})
}

// Where people tell the service, they get a URL, which stays while the workflow is paused.
func TestSetup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.run()
		w := e.workflow("app_order")
		synctest.Wait()
		state := e.state(w)
		wantEqual(t, "status", state.Status, subscription.Manual)
		wantEqual(t, "setup", state.Setup, "Enter "+state.URL+" in the shop.")
		e.setState(w.ID, workflow.Paused)
		synctest.Wait()
		wantEqual(t, "URL while it is paused", e.state(w).URL, state.URL)
		wantEqual(t, "asked", e.asked(), "[]")
	})
}
