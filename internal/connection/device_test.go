package connection_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/test/oauthserver"
)

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

func device(s *oauthserver.Server, more string) []byte {
	return definition(s, fmt.Sprintf(`, "grant": "device_code", "device_url": %q, "revoke_url": %q %s`, s.URL+"/device", s.URL+"/revoke", more))
}

func (in *installation) askDevice(s *oauthserver.Server, more string) connection.DeviceConsent {
	in.t.Helper()
	asked, err := in.ConnectDevice(in.t.Context(), in.owner, connection.New{Name: "shop", Auth: integration.OAuth2, Fields: client, Definition: device(s, more)})
	if err != nil {
		in.t.Fatal(err)
	}
	return asked
}

// poll asks until there is a connection or an error, as the dashboard does.
func (in *installation) poll(node *parts, state string) (connection.Connection, error) {
	in.t.Helper()
	for {
		outcome, err := node.PollDevice(in.t.Context(), in.owner, state)
		if err != nil {
			return connection.Connection{}, err
		}
		if outcome.Connection != nil {
			return *outcome.Connection, nil
		}
		clock.Sleep(in.t.Context(), outcome.Wait)
	}
}

// awaitRequest polls until the service was asked.
func (in *installation) awaitRequest(s *oauthserver.Server, state string) connection.DeviceOutcome {
	in.t.Helper()
	for asked := s.Requests(deviceGrant); ; {
		outcome, err := in.PollDevice(in.t.Context(), in.owner, state)
		if err != nil || outcome.Connection != nil {
			in.t.Fatalf("%+v, %v", outcome, err)
		}
		if s.Requests(deviceGrant) > asked {
			return outcome
		}
		clock.Sleep(in.t.Context(), outcome.Wait)
	}
}

// TestDeviceCode connects, renews, reconnects and deletes a connection with codes. The
// process that begins is not the one that completes.
func TestDeviceCode(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	asked := in.askDevice(s, `, "scopes": ["orders", "stock"], "params": {"audience": "shop"}, "token_params": {"resource": "urn:shop"}`)
	if asked.UserCode == "" || asked.URL != s.URL+"/enter" || !strings.HasSuffix(asked.CompleteURL, asked.UserCode) || asked.Interval != time.Second {
		t.Errorf("%+v", asked)
	}
	if form := s.Form("device"); form.Get("scope") != "orders stock" || form.Get("audience") != "shop" || form.Has("resource") {
		t.Errorf("the request for a code has %v", form)
	}
	if outcome, err := in.PollDevice(t.Context(), in.owner, asked.State); err != nil || outcome.Connection != nil || outcome.Wait <= 0 {
		t.Errorf("%+v, %v", outcome, err)
	}
	in.awaitRequest(s, asked.State)
	if sealed, err := in.store.Connections.SealedConnection(t.Context(), in.owner.Workspace.ID, "shop"); sealed != nil || err != nil {
		t.Errorf("it exists before the consent: %+v, %v", sealed, err)
	}
	s.Decide(t, asked.UserCode, "")
	c, err := in.poll(in.node("node_2"), asked.State)
	if err != nil || c.Status != connection.Connected || c.Name != "shop" {
		t.Fatalf("%+v, %v", c, err)
	}
	if form := s.Form(deviceGrant); form.Get("resource") != "urn:shop" || form.Has("audience") {
		t.Errorf("the request for the token has %v", form)
	}
	_, err = in.PollDevice(t.Context(), in.owner, asked.State)
	faulttest.Want(t, err, fault.ConsentExpired)
	s.ExpireAll()
	if err := in.call(in.parts, s, "shop"); err != nil || s.Requests("refresh_token") != 1 {
		t.Errorf("%v, %d refreshes", err, s.Requests("refresh_token"))
	}

	s.RevokeAll()
	if _, broken := errors.AsType[*connection.BrokenError](in.call(in.parts, s, "shop")); !broken {
		t.Error("it is not broken")
	}
	_, err = in.Reconnect(t.Context(), in.owner, c.ID, redirect, nil)
	faulttest.Want(t, err, fault.InvalidRequest, "/definition/grant")
	asked, err = in.ReconnectDevice(t.Context(), in.owner, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	s.Decide(t, asked.UserCode, "")
	if again, err := in.poll(in.parts, asked.State); err != nil || again.ID != c.ID || again.Epoch <= c.Epoch {
		t.Errorf("%+v, %v", again, err)
	}
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Error(err)
	}
	if err := in.Delete(t.Context(), in.owner, c.ID); err != nil || len(s.Revoked()) != 1 {
		t.Errorf("%v, revoked %v", err, s.Revoked())
	}
	if n := s.TooFast(); n != 0 {
		t.Errorf("the service was asked %d times too early", n)
	}
}

// TestOneDevicePollAtATime checks that several windows and nodes together do not ask
// faster than the service allows, and make one connection.
func TestOneDevicePollAtATime(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	asked := in.askDevice(s, "")
	in.awaitRequest(s, asked.State)
	s.Decide(t, asked.UserCode, "")
	nodes := []*parts{in.parts, in.node("node_2"), in.node("node_3")}
	var windows sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for i := range 9 {
		windows.Go(func() {
			for {
				outcome, err := nodes[i%3].PollDevice(context.Background(), in.owner, asked.State)
				if fault.Is(err, fault.ConsentExpired) {
					return // another window has made it
				}
				if err != nil {
					t.Error(err)
					return
				}
				if outcome.Connection != nil {
					mu.Lock()
					made++
					mu.Unlock()
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	windows.Wait()
	if made != 1 || s.TooFast() != 0 || s.Requests(deviceGrant) != 2 {
		t.Errorf("%d connections, %d requests, %d of them too early", made, s.Requests(deviceGrant), s.TooFast())
	}
}

// TestDeviceAnswers checks what the answers of the token endpoint mean: those of RFC
// 8628, section 3.5, and those of a service that fails for now.
func TestDeviceAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer  string
		respond http.HandlerFunc
		ends    fault.Code // "" if it goes on
		says    string
		wait    time.Duration // until the next request
	}{
		"pending":             {answer: "authorization_pending", wait: time.Second},
		"too fast":            {answer: "slow_down", wait: 6 * time.Second},
		"denied":              {answer: "access_denied", ends: fault.ConsentRefused, says: "connect again and allow it"},
		"expired":             {answer: "expired_token", ends: fault.ConsentExpired, says: "Connect again"},
		"a wrong client":      {answer: "invalid_client", ends: fault.ConsentRefused, says: "Check the client ID and secret"},
		"another error":       {answer: "invalid_grant", ends: fault.ConsentRefused, says: "invalid_grant"},
		"a failure":           {answer: "server_error", wait: 6 * time.Second},
		"a page":              {respond: respondWith(http.StatusOK, "text/html", "<html>"), wait: 6 * time.Second},
		"too many requests":   {respond: respondWith(http.StatusTooManyRequests, "application/json", `{"error": "slow"}`), wait: 6 * time.Second},
		"a broken connection": {respond: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, wait: 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, s := newInstallation(t), oauthserver.Start(t)
			asked := in.askDevice(s, "")
			s.Set(func(now *oauthserver.Settings) { now.Respond = tc.respond })
			s.Decide(t, asked.UserCode, tc.answer)
			if tc.ends == "" {
				if outcome := in.awaitRequest(s, asked.State); outcome.Wait != tc.wait {
					t.Errorf("the next request is in %s", outcome.Wait)
				}
				return
			}
			_, err := in.poll(in.parts, asked.State)
			faulttest.Want(t, err, tc.ends)
			if !strings.Contains(fmt.Sprint(err), tc.says) {
				t.Error(err)
			}
			_, err = in.PollDevice(t.Context(), in.owner, asked.State)
			faulttest.Want(t, err, fault.ConsentExpired)
		})
	}
}

// TestDeviceConsentBelongsToWhoAsked checks that nobody else can complete a consent, and
// that it is not one that a redirect completes.
func TestDeviceConsentBelongsToWhoAsked(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	asked := in.askDevice(s, "")
	s.Decide(t, asked.UserCode, "")
	for name, change := range map[string]func(*auth.Actor){
		"another person":    func(a *auth.Actor) { a.ID = "usr_2" },
		"another workspace": func(a *auth.Actor) { a.Workspace.ID = "ws_other" },
	} {
		other := in.owner
		change(&other)
		if _, err := in.PollDevice(t.Context(), other, asked.State); !fault.Is(err, fault.ConsentExpired) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c, err := in.poll(in.parts, asked.State); err != nil || c.Name != "shop" {
		t.Errorf("%+v, %v", c, err)
	}
	address, err := in.Connect(t.Context(), in.owner, connection.New{
		Name: "other", Auth: integration.OAuth2, Fields: client, Definition: definition(s, fmt.Sprintf(`, "authorize_url": %q`, s.URL+"/authorize")),
	}, redirect)
	if err != nil {
		t.Fatal(err)
	}
	back := s.Consent(t, address)
	_, err = in.PollDevice(t.Context(), in.owner, back.Get("state"))
	faulttest.Want(t, err, fault.ConsentExpired)
	if _, err := in.Complete(t.Context(), in.owner, back); err != nil {
		t.Error(err)
	}
}

// TestDeviceConnectionIsChanged checks that a changed connection needs a new consent, and
// that a consent for the old one does not count.
func TestDeviceConnectionIsChanged(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	asked := in.askDevice(s, "")
	s.Decide(t, asked.UserCode, "")
	c, err := in.poll(in.parts, asked.State)
	if err != nil {
		t.Fatal(err)
	}
	if asked, err = in.ReconnectDevice(t.Context(), in.owner, c.ID); err != nil {
		t.Fatal(err)
	}
	for _, changed := range []string{`, "scopes": ["admin"]`, `, "token_params": {"audience": "x"}`} {
		_, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{Definition: device(s, changed)})
		faulttest.Want(t, err, fault.InvalidRequest, "/fields/client_secret")
	}
	_, err = in.Update(t.Context(), in.owner, c.ID, connection.Patch{Definition: definition(s, fmt.Sprintf(`, "grant": "device_code", "device_url": %q`, "https://evil.example/device"))})
	faulttest.Want(t, err, fault.InvalidRequest, "/fields/client_secret")
	now, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{Definition: device(s, `, "scopes": ["admin"]`), Fields: map[string]string{"client_secret": oauthserver.ClientSecret}})
	if err != nil || now.Status != connection.NeedsReconnect {
		t.Errorf("%+v, %v", now, err)
	}
	s.Decide(t, asked.UserCode, "")
	_, err = in.poll(in.parts, asked.State)
	faulttest.Want(t, err, fault.ConsentExpired)
}

// TestDeviceDefinitions checks which members belong to the grant.
func TestDeviceDefinitions(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	for definition, pointer := range map[string]string{
		`"grant": "device_code", "token_url": "https://id.example/t"`:                                                                               "/definition/device_url",
		`"grant": "device_code", "device_url": "https://id.example/d"`:                                                                              "/definition/token_url",
		`"grant": "device_code", "device_url": "id.example", "token_url": "https://id.example/t"`:                                                   "/definition/device_url",
		`"grant": "device_code", "device_url": "https://id.example/d", "token_url": "https://id.example/t", "authorize_url": "https://id.example/"`: "/definition/authorize_url",
		`"device_url": "https://id.example/d", "token_url": "https://id.example/t"`:                                                                 "/definition/device_url",
		`"grant": "authorization_code", "authorize_url": "https://id.example/", "token_url": "https://id.example/t"`:                                "/definition/grant",
	} {
		_, err := in.ConnectDevice(t.Context(), in.owner, connection.New{Name: "shop", Auth: integration.OAuth2, Fields: client, Definition: []byte(`{"hosts": ["api.example.com"], ` + definition + `}`)})
		faulttest.Want(t, err, fault.InvalidRequest, pointer)
	}
	valid := []byte(`{"hosts": ["api.example.com"], "grant": "device_code", "device_url": "https://id.example/d", "token_url": "https://id.example/t"}`)
	_, err := in.Create(t.Context(), in.owner, connection.New{Name: "shop", Auth: integration.OAuth2, Fields: client, Definition: valid})
	faulttest.Want(t, err, fault.InvalidRequest, "/auth")
	_, err = in.Connect(t.Context(), in.owner, connection.New{Name: "shop", Auth: integration.OAuth2, Fields: client, Definition: valid}, redirect)
	faulttest.Want(t, err, fault.InvalidRequest, "/definition/grant")
	_, err = in.Create(t.Context(), in.owner, connection.New{Name: "shop", Auth: integration.Bearer, Fields: map[string]string{"token": "s3cret"}, Definition: []byte(`{"hosts": ["api.example.com"], "device_url": "https://id.example/d"}`)})
	faulttest.Want(t, err, fault.InvalidRequest, "/definition/device_url")
}

// TestDeviceDiscovery connects by issuer.
func TestDeviceDiscovery(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	document := `{"issuer": "ISSUER", "device_authorization_endpoint": "%[1]s/device", "token_endpoint": "%[1]s/token", "authorization_response_iss_parameter_supported": true}`
	at := issuer(t, map[string]string{openID: fmt.Sprintf(document, s.URL)})
	connect := func(at string) (connection.DeviceConsent, error) {
		return in.ConnectDevice(t.Context(), in.owner, connection.New{
			Name: "shop", Auth: integration.OAuth2, Fields: client, Definition: []byte(fmt.Sprintf(`{"hosts": [%q], "issuer": %q, "grant": "device_code"}`, s.URL, at)),
		})
	}
	asked, err := connect(at)
	if err != nil {
		t.Fatal(err)
	}
	s.Decide(t, asked.UserCode, "")
	c, err := in.poll(in.parts, asked.State)
	if err != nil || !strings.Contains(string(c.Definition), s.URL+"/device") || strings.Contains(string(c.Definition), "iss_required") {
		t.Errorf("%s, %v", c.Definition, err)
	}
	in.owner.ID = "usr_2"
	without := issuer(t, map[string]string{openID: `{"issuer": "ISSUER", "token_endpoint": "ISSUER/t", "authorization_endpoint": "ISSUER/a"}`})
	if err := in.Delete(t.Context(), in.owner, c.ID); err != nil {
		t.Fatal(err)
	}
	_, err = connect(without)
	faulttest.Want(t, err, fault.InvalidRequest, "/definition/issuer")
	if !strings.Contains(fmt.Sprint(err), "does not publish its device_url") {
		t.Error(err)
	}
}

// TestPublicDevice checks that a client without a secret names itself in the body.
func TestPublicDevice(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	s.Set(func(now *oauthserver.Settings) { now.Public = true })
	asked, err := in.ConnectDevice(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.OAuth2, Fields: map[string]string{"client_id": oauthserver.ClientID}, Definition: device(s, ""),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Decide(t, asked.UserCode, "")
	if _, err := in.poll(in.parts, asked.State); err != nil {
		t.Error(err)
	}
}

// TestAnswersWithoutACode checks the responses of a device endpoint that no person can
// use.
func TestAnswersWithoutACode(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	for name, tc := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"an error":               {400, `{"error": "unauthorized_client", "error_description": "no SECRET"}`, "unauthorized_client (no ***)"},
		"a page":                 {200, `<html>`, "200 OK"},
		"no user code":           {200, `{"device_code": "d", "verification_uri": "https://id.example/"}`, "200 OK"},
		"a code that is no text": {200, `{"device_code": "d", "user_code": "a\u0000b", "verification_uri": "https://id.example/"}`, "200 OK"},
		"no address":             {200, `{"device_code": "d", "user_code": "u"}`, "verification_uri"},
		"a script":               {200, `{"device_code": "d", "user_code": "u", "verification_uri": "javascript:alert(1)"}`, "verification_uri"},
		"a file":                 {200, `{"device_code": "d", "user_code": "u", "verification_uri": "file:///etc/passwd"}`, "verification_uri"},
		"a relative address":     {200, `{"device_code": "d", "user_code": "u", "verification_uri": "/device"}`, "verification_uri"},
		"a user in the address":  {200, `{"device_code": "d", "user_code": "u", "verification_uri": "https://id.example@evil.example/"}`, "verification_uri"},
	} {
		server := httptest.NewServer(respondWith(tc.status, "application/json", strings.ReplaceAll(tc.body, "SECRET", oauthserver.ClientSecret)))
		t.Cleanup(server.Close)
		_, err := in.ConnectDevice(t.Context(), in.owner, connection.New{
			Name: "shop", Auth: integration.OAuth2, Fields: client,
			Definition: []byte(fmt.Sprintf(`{"hosts": [%[1]q], "grant": "device_code", "device_url": %[1]q, "token_url": %[1]q}`, server.URL)),
		})
		faulttest.Want(t, err, fault.ConsentRefused)
		if !strings.Contains(fmt.Sprint(err), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLimitsOfDeviceCodes checks how long a code is used, whatever the service says.
func TestLimitsOfDeviceCodes(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	for more, want := range map[string]struct{ life, interval time.Duration }{
		``:                                         {10 * time.Minute, 5 * time.Second},
		`, "expires_in": 86400, "interval": 7`:     {30 * time.Minute, 7 * time.Second},
		`, "expires_in": "900", "interval": "1"`:   {15 * time.Minute, time.Second},
		`, "expires_in": -1, "interval": 0`:        {10 * time.Minute, 5 * time.Second},
		`, "expires_in": 1e300, "interval": 1e300`: {30 * time.Minute, 30 * time.Minute},
	} {
		body := `{"device_code": "d", "user_code": "u", "verification_url": "http://127.0.0.1/enter", "verification_uri_complete": "javascript:x"` + more + `}`
		server := httptest.NewServer(respondWith(http.StatusOK, "application/json", body))
		t.Cleanup(server.Close)
		asked, err := in.ConnectDevice(t.Context(), in.owner, connection.New{
			Name: "shop", Auth: integration.OAuth2, Fields: client,
			Definition: []byte(fmt.Sprintf(`{"hosts": [%[1]q], "grant": "device_code", "device_url": %[1]q, "token_url": %[1]q}`, server.URL)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if left := time.Until(asked.ExpiresAt); left > want.life || left < want.life-5*time.Minute || asked.Interval != want.interval || asked.CompleteURL != "" {
			t.Errorf("%s: %+v", more, asked)
		}
	}
}
