package connection_test

import (
	"errors"
	"testing"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/test/oauthserver"
)

// TestUpdateDoesNotMoveSecrets checks that nobody can send a stored credential to
// another host by changing its connection.
func TestUpdateDoesNotMoveSecrets(t *testing.T) {
	t.Parallel()
	const (
		bearer = `{"hosts": ["api.example.com", "files.example.com"]}`
		client = `{"hosts": ["api.example.com"], "token_url": "https://id.example.com/token"}`
	)
	token, secret := map[string]string{"token": "s3cret"}, map[string]string{"client_id": "c", "client_secret": "s3cret"}
	for name, tc := range map[string]struct {
		was        connection.New
		definition string
		fields     map[string]string
		points     string // what must be entered again
	}{
		"other hosts":                   {connection.New{Auth: integration.Bearer, Definition: []byte(bearer), Fields: token}, `{"hosts": ["evil.example.com"]}`, nil, "/fields/token"},
		"one more host":                 {connection.New{Auth: integration.Bearer, Definition: []byte(bearer), Fields: token}, `{"hosts": ["api.example.com", "evil.example.com"]}`, nil, "/fields/token"},
		"another port":                  {connection.New{Auth: integration.Bearer, Definition: []byte(bearer), Fields: token}, `{"hosts": ["api.example.com:8443"]}`, nil, "/fields/token"},
		"without TLS":                   {connection.New{Auth: integration.Bearer, Definition: []byte(bearer), Fields: token}, `{"hosts": ["http://api.example.com"]}`, nil, "/fields/token"},
		"an empty secret":               {connection.New{Auth: integration.Bearer, Definition: []byte(bearer), Fields: token}, `{"hosts": ["evil.example.com"]}`, map[string]string{"token": ""}, "/fields/token"},
		"another token endpoint":        {connection.New{Auth: integration.OAuth2, Definition: []byte(client), Fields: secret}, `{"hosts": ["api.example.com"], "token_url": "https://evil.example.com/token"}`, nil, "/fields/client_secret"},
		"another endpoint to revoke":    {connection.New{Auth: integration.OAuth2, Definition: []byte(client), Fields: secret}, `{"hosts": ["api.example.com"], "token_url": "https://id.example.com/token", "revoke_url": "https://evil.example.com/"}`, nil, "/fields/client_secret"},
		"another host of an own GitLab": {connection.New{Integration: "gitlab", Auth: integration.Bearer, Fields: map[string]string{"host": "git.example.com", "token": "s3cret"}}, "", map[string]string{"host": "evil.example.com"}, "/fields/token"},
		"fewer hosts":                   {connection.New{Auth: integration.Bearer, Definition: []byte(bearer), Fields: token}, `{"hosts": ["API.example.com."]}`, nil, ""},
		"another path":                  {connection.New{Auth: integration.OAuth2, Definition: []byte(client), Fields: secret}, `{"hosts": ["api.example.com"], "token_url": "https://id.example.com/v2/token"}`, nil, ""},
		"with the secret":               {connection.New{Auth: integration.Bearer, Definition: []byte(bearer), Fields: token}, `{"hosts": ["other.example.com"]}`, token, ""},
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
			if tc.points != "" {
				faulttest.Want(t, err, fault.InvalidRequest, tc.points)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUpdateDoesNotMoveConsents checks the same of a connection that a person has
// consented to.
func TestUpdateDoesNotMoveConsents(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c := in.connect(s, "shop")
	_, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{
		Definition: []byte(`{"hosts": ["evil.example.com"], "authorize_url": "https://evil.example.com/a", "token_url": "https://evil.example.com/t"}`),
		Fields:     map[string]string{"client_secret": "known"},
	})
	faulttest.Want(t, err, fault.InvalidRequest)
	if err := in.call(in.Service, s, "shop"); err != nil {
		t.Error(err)
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
	if _, broken := errors.AsType[*connection.BrokenError](in.call(in.Service, s, "shop")); !broken {
		t.Fatal("the connection works")
	}
	if _, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{Fields: map[string]string{"client_secret": oauthserver.ClientSecret}}); err != nil {
		t.Fatal(err)
	}
	if err := in.call(in.Service, s, "shop"); err != nil {
		t.Error(err)
	}
}
