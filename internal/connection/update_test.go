package connection_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"testing"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/test/oauthserver"
)

// TestUpdateNeedsSecretsAgain checks that nobody can learn a stored credential by
// changing how, where or with which rights its connection uses it.
func TestUpdateNeedsSecretsAgain(t *testing.T) {
	t.Parallel()
	const (
		bearer = `{"hosts": ["api.example.com", "files.example.com"]}`
		key    = `{"hosts": ["api.example.com"], "apply": {"headers": {"X-Key": "${{ secret.key }}"}}, "test_url": "https://api.example.com/me"}`
		client = `{"hosts": ["api.example.com"], "token_url": "https://id.example.com/token", "scopes": ["read", "list"]}`
	)
	// A user name with a colon is rejected, if the answer is yes.
	asking := func(question string) string {
		return fmt.Sprintf(`{"hosts": ["api.example.com"], "apply": {"basic": {"user": "${{ %s ? ':' : 'x' }}", "password": "x"}}, "test_url": "https://api.example.com/me"}`, question)
	}
	withToken := connection.New{Auth: integration.Bearer, Definition: []byte(bearer), Fields: map[string]string{"token": "s3cret"}}
	withKey := connection.New{Auth: integration.APIKey, Definition: []byte(key), Fields: map[string]string{"key": "s3cret"}}
	withClient := connection.New{Auth: integration.OAuth2, Definition: []byte(client), Fields: map[string]string{"client_id": "c", "client_secret": "s3cret"}}
	withPassword := connection.New{Auth: integration.BasicAuth, Definition: []byte(bearer), Fields: map[string]string{"username": "ada", "password": "s3cret"}}
	withAWS := connection.New{
		Auth: integration.AWSSigV4, Definition: []byte(`{"hosts": ["s3.example.com"]}`),
		Fields: map[string]string{"access_key_id": "AKIDEXAMPLE", "secret_access_key": "s3cret", "region": "eu-central-1"},
	}
	withHost := connection.New{Integration: "gitlab", Auth: integration.Bearer, Fields: map[string]string{"host": "git.example.com", "token": "s3cret"}}
	for name, tc := range map[string]struct {
		was        connection.New
		definition string
		fields     map[string]string
		points     string // what must be entered again
	}{
		"other hosts":                   {withToken, `{"hosts": ["evil.example.com"]}`, nil, "/fields/token"},
		"one more host":                 {withToken, `{"hosts": ["api.example.com", "evil.example.com"]}`, nil, "/fields/token"},
		"another port":                  {withToken, `{"hosts": ["api.example.com:8443"]}`, nil, "/fields/token"},
		"without TLS":                   {withToken, `{"hosts": ["http://api.example.com"]}`, nil, "/fields/token"},
		"an empty secret":               {withToken, `{"hosts": ["evil.example.com"]}`, map[string]string{"token": ""}, "/fields/token"},
		"a test":                        {withToken, `{"hosts": ["api.example.com"], "test_url": "https://api.example.com/"}`, nil, "/fields/token"},
		"another expression":            {withKey, `{"hosts": ["api.example.com"], "apply": {"headers": {"X-Key": "${{ len(secret.key) == 6 ? secret.key : fromJSON('') }}"}}, "test_url": "https://api.example.com/me"}`, nil, "/fields/key"},
		"another header":                {withKey, `{"hosts": ["api.example.com"], "apply": {"headers": {"Referer": "${{ secret.key }}"}}, "test_url": "https://api.example.com/me"}`, nil, "/fields/key"},
		"a question about the secret":   {withKey, asking(`secret.key startsWith 's'`), nil, "/fields/key"},
		"another question":              {withKey, asking(`secret.key startsWith 'x'`), nil, "/fields/key"},
		"in the query":                  {withKey, `{"hosts": ["api.example.com"], "apply": {"query": {"q": "${{ secret.key }}"}}, "test_url": "https://api.example.com/me"}`, nil, "/fields/key"},
		"another test":                  {withKey, `{"hosts": ["api.example.com"], "apply": {"headers": {"X-Key": "${{ secret.key }}"}}, "test_url": "https://api.example.com/echo"}`, nil, "/fields/key"},
		"another user":                  {withPassword, "", map[string]string{"username": "eve"}, "/fields/password"},
		"another region":                {withAWS, "", map[string]string{"region": "us-east-1"}, "/fields/secret_access_key"},
		"another service":               {withAWS, `{"hosts": ["s3.example.com"], "service": "iam"}`, nil, "/fields/secret_access_key"},
		"another token endpoint":        {withClient, `{"hosts": ["api.example.com"], "token_url": "https://evil.example.com/token", "scopes": ["read", "list"]}`, nil, "/fields/client_secret"},
		"another path of it":            {withClient, `{"hosts": ["api.example.com"], "token_url": "https://id.example.com/v2/token", "scopes": ["read", "list"]}`, nil, "/fields/client_secret"},
		"another endpoint to revoke":    {withClient, `{"hosts": ["api.example.com"], "token_url": "https://id.example.com/token", "revoke_url": "https://id.example.com/log", "scopes": ["read", "list"]}`, nil, "/fields/client_secret"},
		"one more scope":                {withClient, `{"hosts": ["api.example.com"], "token_url": "https://id.example.com/token", "scopes": ["read", "list", "admin"]}`, nil, "/fields/client_secret"},
		"no scope":                      {withClient, `{"hosts": ["api.example.com"], "token_url": "https://id.example.com/token"}`, nil, "/fields/client_secret"},
		"another grant":                 {withClient, `{"hosts": ["api.example.com"], "token_url": "https://id.example.com/token", "authorize_url": "https://id.example.com/", "scopes": ["read", "list"]}`, nil, "/fields/client_secret"},
		"another client":                {withClient, "", map[string]string{"client_id": "d"}, "/fields/client_secret"},
		"credentials in the body":       {withClient, `{"hosts": ["api.example.com"], "token_url": "https://id.example.com/token", "client_auth": "body", "scopes": ["read", "list"]}`, nil, "/fields/client_secret"},
		"another audience":              {withClient, `{"hosts": ["api.example.com"], "token_url": "https://id.example.com/token", "token_params": {"audience": "admin"}, "scopes": ["read", "list"]}`, nil, "/fields/client_secret"},
		"token requests in JSON":        {withClient, `{"hosts": ["api.example.com"], "token_url": "https://id.example.com/token", "token_body": "json", "scopes": ["read", "list"]}`, nil, "/fields/client_secret"},
		"another host of an own GitLab": {withHost, "", map[string]string{"host": "evil.example.com"}, "/fields/token"},
		"fewer hosts":                   {withToken, `{"hosts": ["API.example.com."]}`, nil, ""},
		"fewer scopes":                  {withClient, `{"hosts": ["api.example.com"], "token_url": "https://id.example.com/token", "scopes": ["list"]}`, nil, ""},
		"the same":                      {withKey, key, nil, ""},
		"another secret":                {withKey, "", map[string]string{"key": "another s3cret"}, ""},
		"with the secret":               {withToken, `{"hosts": ["other.example.com"]}`, map[string]string{"token": "s3cret"}, ""},
		"a secret with another name":    {withKey, `{"hosts": ["api.example.com"], "apply": {"headers": {"X-Key": "${{ secret.token }}"}}}`, map[string]string{"token": "another s3cret"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newInstallation(t)
			tc.was.Name = "shop"
			c, err := in.Create(t.Context(), in.owner, tc.was)
			if err != nil {
				t.Fatal(err)
			}
			patch := connection.Patch{Fields: tc.fields}
			if tc.definition != "" {
				patch.Definition = []byte(tc.definition)
			}
			_, err = in.Update(t.Context(), in.owner, c.ID, patch)
			if tc.points == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			faulttest.Want(t, err, fault.InvalidRequest, tc.points)
			if now, err := in.Get(t.Context(), in.owner, c.ID); err != nil || !reflect.DeepEqual(now, c) {
				t.Errorf("it is now %+v, %v", now, err)
			}
		})
	}
}

// TestUpdateEndsConsent checks that a person has to consent again to a connection that is
// used in another way, and that the token of the first consent is gone.
func TestUpdateEndsConsent(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c := in.connect(s, "shop")
	more := definition(s, fmt.Sprintf(`, "authorize_url": %q, "scopes": ["admin"]`, s.URL+"/authorize"))
	_, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{Definition: more})
	faulttest.Want(t, err, fault.InvalidRequest, "/fields/client_secret")
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Error(err)
	}
	now, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{Definition: more, Fields: map[string]string{"client_secret": oauthserver.ClientSecret}})
	if err != nil || now.Status != connection.NeedsReconnect || now.ExpiresAt != nil {
		t.Fatalf("it is now %+v, %v", now, err)
	}
	if _, broken := errors.AsType[*connection.BrokenError](in.call(in.parts, s, "shop")); !broken {
		t.Error("the first consent still counts")
	}
	// Only a consent ends that, not another change.
	for _, fields := range []map[string]string{{}, {"client_secret": oauthserver.ClientSecret}} {
		if now, err = in.Update(t.Context(), in.owner, c.ID, connection.Patch{Fields: fields}); err != nil || now.Status != connection.NeedsReconnect {
			t.Errorf("it is now %+v, %v", now, err)
		}
	}
	address, err := in.Reconnect(t.Context(), in.owner, c.ID, redirect, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Complete(t.Context(), in.owner, s.Consent(t, address)); err != nil {
		t.Fatal(err)
	}
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Error(err)
	}
}

// TestUpdateTellsNothingAboutTokens checks that a definition that is only valid for some
// tokens is not compared with the token that a person consented to.
func TestUpdateTellsNothingAboutTokens(t *testing.T) {
	t.Parallel()
	for _, question := range []string{`token startsWith 'access-'`, `token startsWith 'x'`} {
		in, s := newInstallation(t), oauthserver.Start(t)
		c := in.connect(s, "shop")
		asking := definition(s, fmt.Sprintf(`, "authorize_url": %q, "apply": {"basic": {"user": "${{ %s ? ':' : 'x' }}", "password": "x"}}`, s.URL+"/authorize", question))
		now, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{Definition: asking, Fields: map[string]string{"client_secret": "anything"}})
		if err != nil || now.Status != connection.NeedsReconnect {
			t.Errorf("%s: it is now %s, %v", question, now.Status, err)
		}
	}
}

// TestAppSecretStaysAtItsService checks that the secret of an OAuth app is not sent to
// a host that whoever connects has chosen.
func TestAppSecretStaysAtItsService(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	if _, _, err := in.PutApp(t.Context(), in.owner, connection.NewApp{Integration: "gitlab", ClientID: "c", ClientSecret: "s3cret", Shared: true}); err != nil {
		t.Fatal(err)
	}
	connect := func(host string) error {
		_, err := in.Connect(t.Context(), in.owner, connection.New{Name: "git", Integration: "gitlab", Auth: "oauth2", Fields: map[string]string{"host": host}}, redirect)
		return err
	}
	faulttest.Want(t, connect("evil.example.com"), fault.InvalidRequest, "/fields/host")
	if err := connect("gitlab.com"); err != nil {
		t.Error(err)
	}
}

// TestUpdateRepairsConnection checks that a connection whose client was rejected works
// once its secret is corrected.
func TestUpdateRepairsConnection(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c, err := in.Create(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.OAuth2, Definition: definition(s, ""), Fields: map[string]string{"client_id": oauthserver.ClientID, "client_secret": "a typo"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, broken := errors.AsType[*connection.BrokenError](in.call(in.parts, s, "shop")); !broken {
		t.Fatal("the connection works")
	}
	if _, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{Fields: map[string]string{"client_secret": oauthserver.ClientSecret}}); err != nil {
		t.Fatal(err)
	}
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Error(err)
	}
}

// TestUpdateOfClientSecret checks that a token that a person consented to is renewed with
// a new secret of the client.
func TestUpdateOfClientSecret(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c := in.connect(s, "shop")
	s.Set(func(now *oauthserver.Settings) { now.Secret = "another-secret-of-the-client" })
	s.ExpireAll()
	if _, broken := errors.AsType[*connection.BrokenError](in.call(in.parts, s, "shop")); !broken {
		t.Fatal("the old secret of the client still works")
	}
	if _, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{Fields: map[string]string{"client_secret": "another-secret-of-the-client"}}); err != nil {
		t.Fatal(err)
	}
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Error(err)
	}
}

// TestUpdateDuringConsent checks that a consent that is completed late does not undo a
// change of its connection.
func TestUpdateDuringConsent(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	with := func(hosts string) []byte {
		return fmt.Appendf(nil, `{"hosts": [%s], "authorize_url": %q, "token_url": %q}`, hosts, s.URL+"/authorize", s.URL+"/token")
	}
	consent := func(address string, err error) (connection.Completed, error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return in.Complete(t.Context(), in.owner, s.Consent(t, address))
	}
	c, err := consent(in.Connect(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.OAuth2, Fields: map[string]string{"client_id": oauthserver.ClientID, "client_secret": oauthserver.ClientSecret},
		Definition: with(fmt.Sprintf(`%q, "api.example.com"`, s.URL)),
	}, redirect))
	if err != nil {
		t.Fatal(err)
	}
	address, err := in.Reconnect(t.Context(), in.owner, c.ID, redirect, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{Definition: with(fmt.Sprintf("%q", s.URL))}); err != nil {
		t.Fatal(err)
	}
	_, err = consent(address, nil)
	faulttest.Want(t, err, fault.ConsentExpired)
	if now, err := in.Get(t.Context(), in.owner, c.ID); err != nil || len(now.Hosts) != 1 {
		t.Errorf("it is now %+v, %v", now, err)
	}
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Error(err)
	}
	// A renewal meanwhile is no change.
	if address, err = in.Reconnect(t.Context(), in.owner, c.ID, redirect, nil); err != nil {
		t.Fatal(err)
	}
	s.ExpireAll()
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Error(err)
	}
	if _, err := consent(address, nil); err != nil {
		t.Error(err)
	}
}

// TestUpdateDuringRenewal checks that a change that keeps the token of a consent does not
// lose the token that is issued meanwhile: the refresh token is valid only once.
func TestUpdateDuringRenewal(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c := in.connect(s, "shop")
	arrived, released := make(chan struct{}), make(chan struct{})
	s.Set(func(now *oauthserver.Settings) {
		now.Before = func(*http.Request) {
			arrived <- struct{}{}
			<-released
		}
	})
	s.ExpireAll()
	called := make(chan error, 2)
	go func() { called <- in.call(in.parts, s, "shop") }()
	<-arrived
	s.Set(func(now *oauthserver.Settings) { now.Before = nil })
	if _, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{Fields: map[string]string{"client_secret": oauthserver.ClientSecret}}); err != nil {
		t.Fatal(err)
	}
	go func() { called <- in.call(in.node("node_1"), s, "shop") }() // it waits for the renewal, or comes after it
	close(released)
	for range cap(called) {
		if err := <-called; err != nil {
			t.Error(err)
		}
	}
	if n := s.Requests("refresh_token"); n != 1 {
		t.Errorf("the token was renewed %d times", n)
	}
	s.ExpireAll()
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Error(err)
	}
}

// TestUpdateOfClientSecretDuringRenewal checks that a renewal with the old secret of the
// client, which the service refuses, is repeated with the new one.
func TestUpdateOfClientSecretDuringRenewal(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c := in.connect(s, "shop")
	arrived, released := make(chan struct{}), make(chan struct{})
	s.Set(func(now *oauthserver.Settings) {
		now.Secret = "another-secret-of-the-client"
		now.Before = func(*http.Request) {
			arrived <- struct{}{}
			<-released
		}
	})
	s.ExpireAll()
	called := make(chan error)
	go func() { called <- in.call(in.parts, s, "shop") }()
	<-arrived
	s.Set(func(now *oauthserver.Settings) { now.Before = nil })
	if _, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{Fields: map[string]string{"client_secret": "another-secret-of-the-client"}}); err != nil {
		t.Fatal(err)
	}
	close(released)
	if err := <-called; err != nil {
		t.Error(err)
	}
}

// during is a client that calls a function during each request.
type during func()

func (d during) Do(context.Context, egress.Request) (*egress.Response, error) {
	d()
	return &egress.Response{Status: http.StatusOK, Body: []byte("{}")}, nil
}

// TestUpdateDuringTest checks that the test of a secret that was replaced meanwhile says
// nothing about the new one.
func TestUpdateDuringTest(t *testing.T) {
	t.Parallel()
	in, ctx := newInstallation(t), t.Context()
	var c connection.Connection
	replace := true
	in.client = during(func() {
		if !replace {
			return
		}
		if _, err := in.Update(ctx, in.owner, c.ID, connection.Patch{Fields: map[string]string{"token": "another token"}}); err != nil {
			t.Error(err)
		}
	})
	in.parts = in.node("node_1")
	c, err := in.Create(ctx, in.owner, connection.New{
		Name: "shop", Auth: integration.Bearer, Fields: map[string]string{"token": "a token"},
		Definition: []byte(`{"hosts": ["api.example.com"], "test_url": "https://api.example.com/me"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []connection.Status{connection.Untested, connection.Connected} {
		if result, err := in.Test(ctx, in.owner, c.ID); err != nil || result.Connection.Status != want {
			t.Errorf("the status is %s, %v, want %s", result.Connection.Status, err, want)
		}
		replace = false
	}
}
