package connection_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// failingDB is a database that can fail.
type failingDB struct {
	*sqlite.DB
	full atomic.Bool // nothing can be written
	away atomic.Bool // it does not respond
	lost atomic.Bool // the response to the next write is lost
}

func (d *failingDB) Read(ctx context.Context, fn func(database.Conn) error) error {
	if d.away.Load() {
		return errors.New("the database is away")
	}
	return d.DB.Read(ctx, fn)
}

func (d *failingDB) Write(ctx context.Context, fn func(database.Conn) error) error {
	switch {
	case d.away.Load():
		return errors.New("the database is away")
	case d.full.Load():
		return fault.New(fault.StorageFull, "the disk is full")
	}
	err := d.DB.Write(ctx, fn)
	if err == nil && d.lost.CompareAndSwap(true, false) {
		return fault.New(fault.Unavailable, "it is not known whether the change was saved")
	}
	return err
}

// tokenHook calls a function after each answer of an endpoint.
type tokenHook struct {
	*endpoint
	answered func()
}

func (h *tokenHook) Do(ctx context.Context, r egress.Request) (*egress.Response, error) {
	resp, err := h.endpoint.Do(ctx, r)
	if h.answered != nil {
		h.answered()
	}
	return resp, err
}

// unstored is a connection whose store can fail.
type unstored struct {
	*installation
	db     *failingDB
	tokens *tokenHook
	id     string
	send   func(time.Duration) (string, error)
}

func newUnstored(t *testing.T) *unstored {
	t.Helper()
	in, tokens, id, send := withEndpoint(t)
	u := &unstored{installation: in, db: &failingDB{DB: in.db}, tokens: &tokenHook{endpoint: tokens}, id: id, send: send}
	in.store, in.client = store.New(u.db, store.Notify{}), u.tokens
	in.parts = in.node("node_1")
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		in.Shutdown(ctx) // nothing is retried after the test
	})
	return u
}

// wantStoreError checks that a step was not told that its connection failed.
func wantStoreError(t *testing.T, err error) {
	t.Helper()
	if _, ok := errors.AsType[*connection.StoreError](err); !ok {
		t.Errorf("%v is no StoreError", err)
	}
	if failure, ok := errors.AsType[*action.Failure](err); ok {
		t.Errorf("the step fails with %v", failure)
	}
}

// expect sends a request and checks its token.
func (u *unstored) expect(want string, issued int) {
	u.t.Helper()
	token, err := u.send(time.Minute)
	if err != nil || token != want || u.tokens.issued != issued {
		u.t.Errorf("sent %q, %v after %d tokens were issued, want %q after %d", token, err, u.tokens.issued, want, issued)
	}
}

// A token that was issued while the store fails is kept and stored later. Until then no
// other one is requested.
func TestTokenIsKeptUntilItIsStored(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*failingDB) *atomic.Bool{
		"full": func(d *failingDB) *atomic.Bool { return &d.full },
		"away": func(d *failingDB) *atomic.Bool { return &d.away },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				u := newUnstored(t)
				u.expect("token-1", 1)
				time.Sleep(2 * time.Hour)
				failing := fail(u.db)
				u.tokens.answered = func() { failing.Store(true) }
				_, err := u.send(time.Minute)
				wantStoreError(t, err)
				time.Sleep(time.Hour)
				_, err = u.send(time.Minute)
				wantStoreError(t, err)
				if u.tokens.issued != 2 {
					t.Errorf("%d tokens were issued", u.tokens.issued)
				}
				u.tokens.answered = nil
				failing.Store(false)
				time.Sleep(10 * time.Second)
				if c, err := u.Get(t.Context(), u.owner, u.id); err != nil || c.Epoch != 3 {
					t.Errorf("%+v, %v", c, err)
				}
				u.expect("token-3", 3) // the second one has expired
			})
		})
	}
}

// A commit whose response is lost is not repeated.
func TestLostResponseToCommitOfToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUnstored(t)
		u.tokens.answered = func() { u.db.lost.Store(true) }
		_, err := u.send(time.Minute)
		wantStoreError(t, err)
		u.tokens.answered = nil
		time.Sleep(10 * time.Second)
		u.expect("token-1", 1)
		if c, err := u.Get(t.Context(), u.owner, u.id); err != nil || c.Epoch != 2 {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

// Whatever the store fails to do while a connection is used, no step fails because of it.
func TestStoreFailsWhileConnectionIsUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUnstored(t)
		u.db.away.Store(true)
		_, err := u.send(time.Minute) // it cannot be read
		wantStoreError(t, err)
		u.db.away.Store(false)
		u.db.full.Store(true)
		_, err = u.send(time.Minute) // it cannot be claimed
		wantStoreError(t, err)
		u.db.full.Store(false)
		u.tokens.next = &egress.Response{Status: http.StatusUnauthorized, Body: []byte(`{"error": "invalid_client"}`)}
		u.tokens.answered = func() { u.db.full.Store(true) }
		_, err = u.send(time.Minute) // it cannot be marked as broken
		wantStoreError(t, err)
		u.tokens.answered = nil
		u.db.full.Store(false)
		time.Sleep(10 * time.Second) // the claim is released
		err = u.Use(t.Context(), u.owner.Workspace.ID, "shop", time.Minute, func(context.Context, action.Connection) error {
			u.db.full.Store(true)
			return nil
		})
		if err != nil { // it cannot be marked as connected
			t.Error(err)
		}
		if c, err := u.Get(t.Context(), u.owner, u.id); err != nil || c.Status != connection.Untested {
			t.Errorf("%+v, %v", c, err)
		}
		u.db.full.Store(false)
		u.expect("token-1", 1)
		if c, err := u.Get(t.Context(), u.owner, u.id); err != nil || c.Status != connection.Connected {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

// A claim that may have been written, although the store failed, does not delay the next
// renewal for as long as it is valid.
func TestClaimWithLostResponseIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUnstored(t)
		u.db.lost.Store(true)
		_, err := u.send(time.Minute)
		wantStoreError(t, err)
		begun := time.Now()
		u.expect("token-1", 1)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the renewal took %v", took)
		}
	})
}

// A process that stops waits until a token is stored, but not forever.
func TestStopWithTokenThatIsNotStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUnstored(t)
		u.tokens.answered = func() { u.db.full.Store(true) }
		_, err := u.send(time.Minute)
		wantStoreError(t, err)
		go func() {
			time.Sleep(3 * time.Second)
			u.db.full.Store(false)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		u.Shutdown(ctx)
		if c, err := u.Get(t.Context(), u.owner, u.id); err != nil || c.Epoch != 2 || ctx.Err() != nil {
			t.Errorf("%+v, %v", c, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		u := newUnstored(t)
		u.tokens.answered = func() { u.db.full.Store(true) }
		_, err := u.send(time.Minute)
		wantStoreError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		u.Shutdown(ctx)
		synctest.Wait()
		if log := u.log.String(); !strings.Contains(log, "may have to be reconnected") {
			t.Errorf("the log does not say so: %s", log)
		}
	})
}

// A node that was paused during a renewal repairs a connection that another node found to
// be broken meanwhile, because it tried the same refresh token. It changes nothing if the
// other node has renewed it.
func TestRenewalEndsAfterThatOfAnotherNode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		other  *egress.Response
		token  string
		issued int
	}{
		"that was refused": {&egress.Response{Status: http.StatusUnauthorized, Body: []byte(`{"error": "invalid_client"}`)}, "token-1", 1},
		"that was granted": {nil, "token-2", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				u := newUnstored(t)
				paused, resumed := make(chan struct{}), make(chan struct{})
				u.tokens.answered = func() {
					u.tokens.answered = nil
					close(paused)
					<-resumed
				}
				sent := make(chan error)
				go func() {
					_, err := u.send(time.Hour)
					sent <- err
				}()
				<-paused
				time.Sleep(10 * time.Minute)
				u.tokens.next = tc.other
				other := u.node("node_2")
				err := other.Use(t.Context(), u.owner.Workspace.ID, "shop", time.Minute, func(context.Context, action.Connection) error { return nil })
				if _, broken := errors.AsType[*connection.BrokenError](err); broken != (tc.other != nil) {
					t.Fatal(err)
				}
				close(resumed)
				if err := <-sent; err != nil {
					t.Error(err)
				}
				u.expect(tc.token, tc.issued)
				if c, err := u.Get(t.Context(), u.owner, u.id); err != nil || c.Status != connection.Connected || c.Epoch != 2 {
					t.Errorf("%+v, %v", c, err)
				}
			})
		})
	}
}

// consent begins to connect by consent, and returns what the service sends back.
func (u *unstored) consent(begin func() (string, error)) url.Values {
	u.t.Helper()
	address, err := begin()
	if err != nil {
		u.t.Fatal(err)
	}
	at, err := url.Parse(address)
	if err != nil {
		u.t.Fatal(err)
	}
	return url.Values{"state": {at.Query().Get("state")}, "code": {"the-code"}}
}

// What a person has consented to is kept until it is stored, and they are told so.
func TestConsentIsKeptUntilItIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUnstored(t)
		connect := func() (string, error) {
			return u.Connect(t.Context(), u.owner, connection.New{
				Name: "crm", Auth: integration.OAuth2, Fields: map[string]string{"client_id": "client", "client_secret": "the secret"},
				Definition: []byte(`{"hosts": ["api.example.com"], "authorize_url": "https://id.example.com/authorize", "token_url": "https://id.example.com/token"}`),
			}, redirect)
		}
		var id string
		find := func() *connection.Sealed {
			c, err := u.store.Connections.SealedConnection(t.Context(), u.owner.Workspace.ID, "crm")
			if err != nil {
				t.Fatal(err)
			}
			if c != nil {
				id = c.ID
			}
			return c
		}
		for epoch, begin := range []func() (string, error){
			connect, func() (string, error) { return u.Reconnect(t.Context(), u.owner, id, redirect, nil) },
		} {
			back := u.consent(begin)
			u.tokens.answered = func() { u.db.full.Store(true) }
			_, err := u.Complete(t.Context(), u.owner, back)
			faulttest.Want(t, err, fault.Unavailable)
			if err != nil && !strings.Contains(err.Error(), "not stored yet") {
				t.Error(err)
			}
			u.tokens.answered = nil
			time.Sleep(time.Hour)
			if c := find(); c != nil && c.Epoch > int64(epoch) {
				t.Errorf("it is stored: %+v", c)
			}
			u.db.full.Store(false)
			u.db.lost.Store(true) // and once more, after it was written
			time.Sleep(20 * time.Second)
			if c := find(); c == nil || c.Epoch != int64(epoch)+1 || c.Status != connection.Connected {
				t.Errorf("it is not stored: %+v", c)
			}
		}
		if u.tokens.issued != 2 {
			t.Errorf("%d tokens were issued", u.tokens.issued)
		}
	})
}

// A consent that could not be stored in time does not replace a later one.
func TestLateConsentDoesNotReplaceALaterOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUnstored(t)
		connect := func(name string) connection.Connection {
			done, err := u.Complete(t.Context(), u.owner, u.consent(func() (string, error) {
				return u.Connect(t.Context(), u.owner, connection.New{
					Name: name, Auth: integration.OAuth2, Fields: map[string]string{"client_id": "client", "client_secret": "the secret"},
					Definition: []byte(`{"hosts": ["api.example.com"], "authorize_url": "https://id.example.com/authorize", "token_url": "https://id.example.com/token"}`),
				}, redirect)
			}))
			if err != nil {
				t.Fatal(err)
			}
			return done.Connection
		}
		c := connect("crm")
		reconnect := func() (string, error) { return u.Reconnect(t.Context(), u.owner, c.ID, redirect, nil) }
		first, second := u.consent(reconnect), u.consent(reconnect)
		u.tokens.answered = func() { u.db.full.Store(true) }
		_, err := u.Complete(t.Context(), u.owner, first)
		faulttest.Want(t, err, fault.Unavailable)
		u.tokens.answered = nil
		u.db.full.Store(false)
		if _, err := u.Complete(t.Context(), u.owner, second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if now, err := u.Get(t.Context(), u.owner, c.ID); err != nil || now.Epoch != 2 {
			t.Errorf("%+v, %v", now, err)
		}
	})
}

// The dialog of a device code goes on until the connection is stored.
func TestDeviceConsentIsKeptUntilItIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUnstored(t)
		u.tokens.next = &egress.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(
			`{"device_code": "the-device-code", "user_code": "ABCD", "verification_uri": "https://id.example.com/enter", "interval": 5, "expires_in": 600}`)}
		begun, err := u.ConnectDevice(t.Context(), u.owner, connection.New{
			Name: "crm", Auth: integration.OAuth2, Fields: map[string]string{"client_id": "client", "client_secret": "the secret"},
			Definition: []byte(`{"hosts": ["api.example.com"], "grant": "device_code", "device_url": "https://id.example.com/device", "token_url": "https://id.example.com/token"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(begun.Interval)
		u.tokens.answered = func() { u.db.full.Store(true) }
		for range 50 {
			outcome, err := u.PollDevice(t.Context(), u.owner, begun.State)
			if err != nil || outcome.Connection != nil || outcome.Wait == 0 {
				t.Fatalf("%+v, %v", outcome, err)
			}
			time.Sleep(outcome.Wait)
		}
		other := u.owner
		other.ID = "usr_2"
		_, err = u.PollDevice(t.Context(), other, begun.State)
		faulttest.Want(t, err, fault.ConsentExpired)
		u.db.full.Store(false)
		time.Sleep(10 * time.Second)
		outcome, err := u.PollDevice(t.Context(), u.owner, begun.State)
		if err != nil || outcome.Connection == nil || outcome.Connection.Name != "crm" {
			t.Errorf("%+v, %v", outcome, err)
		}
		if u.tokens.issued != 1 {
			t.Errorf("%d tokens were issued", u.tokens.issued)
		}
	})
}
