package connection_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/paging"
)

// endingTokens stands in for a token endpoint that says how long refresh tokens live.
type endingTokens struct {
	refresh string
	life    map[string]int // seconds, by the name of the member
	issued  int
}

func (e *endingTokens) Do(context.Context, egress.Request) (*egress.Response, error) {
	e.issued++
	answer := map[string]any{"access_token": fmt.Sprintf("access-%d", e.issued), "refresh_token": e.refresh, "expires_in": 3600}
	for name, seconds := range e.life {
		answer[name] = seconds
	}
	body, err := json.Marshal(answer)
	return &egress.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, err
}

// A consent that ends soon is renewed, and if that does not move its end, people are
// warned once.
func TestEndOfConsent(t *testing.T) {
	t.Parallel()
	const day = 24 * 60 * 60
	in, service := newInstallation(t), &endingTokens{refresh: "refresh-1", life: map[string]int{"refresh_token_expires_in": 60 * day}}
	in.client = service
	in.parts = in.node("node_1")
	ctx := t.Context()
	complete := func(address string, err error) connection.Connection {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		at, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		done, err := in.Complete(ctx, in.owner, url.Values{"code": {"the-code"}, "state": {at.Query().Get("state")}})
		if err != nil {
			t.Fatal(err)
		}
		return done.Connection
	}
	c := complete(in.Connect(ctx, in.owner, connection.New{
		Name: "shop", Auth: integration.OAuth2, Fields: map[string]string{"client_id": "client", "client_secret": "secret"},
		Definition: []byte(`{"hosts": ["api.example.com"], "authorize_url": "https://id.example.com/a", "token_url": "https://id.example.com/t"}`),
	}, redirect))
	now := func() connection.Connection {
		t.Helper()
		c, err := in.Get(ctx, in.owner, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	wantEnd := func(days int) {
		t.Helper()
		want := time.Duration(days) * 24 * time.Hour
		if end := now().ConsentEndsAt; end == nil || end.Sub(clock.Now()).Round(time.Hour) != want {
			t.Errorf("the consent ends at %v, want in %v", end, want)
		}
	}
	wantWarning := func(before time.Duration) {
		t.Helper()
		if c := now(); c.WarnAt == nil || c.ConsentEndsAt.Sub(*c.WarnAt).Round(time.Hour) != before {
			t.Errorf("the warning is at %v for the end at %v, want %v before", c.WarnAt, c.ConsentEndsAt, before)
		}
	}
	isDue := func() {
		t.Helper()
		err := in.db.Write(ctx, func(c database.Conn) error {
			_, err := c.Exec(`UPDATE connections SET warn_at = $1`, clock.Now().Add(-time.Second))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(warnings int) {
		t.Helper()
		if err := in.CheckEnding(ctx); err != nil {
			t.Fatal(err)
		}
		found, err := in.store.Events.Events(ctx, c.WorkspaceID, event.Query{Filter: event.Filter{Types: []event.Type{event.ConnectionEnding}}}, paging.Request{Limit: 10})
		if err != nil || len(found.Items) != warnings {
			t.Errorf("%d warnings, want %d: %v", len(found.Items), warnings, err)
		}
	}
	wantEnd(60)
	wantWarning(7 * 24 * time.Hour)
	check(0)
	if service.issued != 1 {
		t.Errorf("%d tokens were issued before it was due", service.issued)
	}

	isDue()
	service.refresh, service.life = "refresh-2", map[string]int{"refresh_expires_in": 20 * day}
	check(0)
	wantEnd(20)
	wantWarning(5 * 24 * time.Hour) // a quarter of its life

	isDue()
	service.life = map[string]int{"x_refresh_token_expires_in": 20*day + 5} // the same end
	check(1)
	wantEnd(20)
	if w := now().WarnAt; w != nil {
		t.Errorf("another warning is due at %v", w)
	}
	if _, err := in.Test(ctx, in.owner, c.ID); err != nil {
		t.Fatal(err)
	}
	check(1)

	service.refresh, service.life = "refresh-3", nil
	complete(in.Reconnect(ctx, in.owner, c.ID, redirect, nil))
	if c := now(); c.ConsentEndsAt != nil || c.WarnAt != nil {
		t.Errorf("the end is not known, and is %v", c.ConsentEndsAt)
	}
	service.refresh = "" // then it ends with the token
	complete(in.Reconnect(ctx, in.owner, c.ID, redirect, nil))
	if c := now(); c.ConsentEndsAt == nil || !c.ConsentEndsAt.Equal(*c.ExpiresAt) {
		t.Errorf("the end is %v, and the token expires at %v", c.ConsentEndsAt, c.ExpiresAt)
	}
	isDue()
	check(2)
}
