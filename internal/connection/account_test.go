package connection_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
)

// signedIn stands in for GitHub, where a person is signed in.
type signedIn struct{ login string }

func (s *signedIn) Do(context.Context, egress.Request) (*egress.Response, error) {
	return &egress.Response{
		Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: fmt.Appendf(nil, `{"access_token": "token-of-%[1]s", "login": %[1]q}`, s.login),
	}, nil
}

// A person who reconnects with another account has to confirm it. Until then nothing
// changes.
func TestReconnectAsAnotherAccount(t *testing.T) {
	t.Parallel()
	in, person := newInstallation(t), &signedIn{"ada"}
	in.client = person
	in.parts = in.node("node_1")
	ctx := t.Context()
	if _, _, err := in.PutApp(ctx, in.owner, connection.NewApp{Integration: "github", ClientID: "client", ClientSecret: "s3cret"}); err != nil {
		t.Fatal(err)
	}
	complete := func(address string, err error) (connection.Completed, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		at, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		state := at.Query().Get("state")
		done, err := in.Complete(ctx, in.owner, url.Values{"code": {"the-code"}, "state": {state}})
		if err != nil {
			t.Fatal(err)
		}
		return done, state
	}
	made, state := complete(in.Connect(ctx, in.owner, connection.New{Name: "code", Integration: "github", Auth: "oauth2"}, redirect))
	if made.Account != "ada" || made.Replaces != "" {
		t.Fatalf("the connection is %+v", made)
	}
	_, err := in.Confirm(ctx, in.owner, state)
	faulttest.Want(t, err, fault.ConsentExpired)
	now := func() connection.Connection {
		t.Helper()
		c, err := in.Get(ctx, in.owner, made.ID)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	reconnect := func() (connection.Completed, string) {
		t.Helper()
		return complete(in.Reconnect(ctx, in.owner, made.ID, redirect, nil))
	}

	if same, _ := reconnect(); same.Replaces != "" || now().Epoch != made.Epoch+1 {
		t.Errorf("the same account had to be confirmed: %+v", same)
	}
	before := now()
	person.login = "grace"
	other, state := reconnect()
	if other.Account != "grace" || other.Replaces != "ada" || now().Account != "ada" || now().Epoch != before.Epoch {
		t.Fatalf("before the confirmation: %+v, %+v", other, now())
	}
	stranger := in.owner
	stranger.ID = "usr_2"
	_, err = in.Confirm(ctx, stranger, state)
	faulttest.Want(t, err, fault.ConsentExpired)
	if confirmed, err := in.Confirm(ctx, in.owner, state); err != nil || confirmed.Account != "grace" || now().Account != "grace" || now().Epoch != before.Epoch+1 {
		t.Errorf("confirmed %+v, %v", confirmed, err)
	}
	in.wantMasked(in.node("node_2"), []string{"code"}, "token-of-grace")
	_, err = in.Confirm(ctx, in.owner, state)
	faulttest.Want(t, err, fault.ConsentExpired)

	// A confirmation is not a callback.
	person.login = "mary"
	_, state = reconnect()
	_, err = in.Complete(ctx, in.owner, url.Values{"code": {"the-code"}, "state": {state}})
	faulttest.Want(t, err, fault.ConsentExpired)

	// A change in the meantime wins.
	_, state = reconnect()
	if _, err := in.Test(ctx, in.owner, made.ID); err != nil {
		t.Fatal(err)
	}
	if err := in.Delete(ctx, in.owner, made.ID); err != nil {
		t.Fatal(err)
	}
	_, err = in.Confirm(ctx, in.owner, state)
	faulttest.Want(t, err, fault.ConnectionNotFound)
}
