package connection_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/test/oauthserver"
)

const privateKeyJWT = `, "client_auth": "private_key_jwt"`

// signingClient returns the fields of a client that signs, and makes the server know its
// key.
func signingClient(t *testing.T, s *oauthserver.Server) map[string]string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	s.Set(func(now *oauthserver.Settings) { now.Key = key.Public() })
	return map[string]string{
		"client_id": oauthserver.ClientID, "key_id": "key-1", "private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})),
	}
}

// TestSignedConsent connects, renews and revokes with a client that signs assertions. The
// server accepts each of them once.
func TestSignedConsent(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	address, err := in.Connect(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.OAuth2, Fields: signingClient(t, s),
		Definition: definition(s, fmt.Sprintf(`, "authorize_url": %q, "revoke_url": %q`, s.URL+"/authorize", s.URL+"/revoke")+privateKeyJWT),
	}, redirect)
	if err != nil {
		t.Fatal(err)
	}
	c, err := in.Complete(t.Context(), in.owner, s.Consent(t, address))
	if err != nil {
		t.Fatal(err)
	}
	if c.Fields["key_id"] != "key-1" || c.Fields["private_key"] != "" {
		t.Errorf("the fields are %v", c.Fields)
	}
	for range 2 {
		s.ExpireAll()
		if err := in.call(in.parts, s, "shop"); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Delete(t.Context(), in.owner, c.ID); err != nil || len(s.Revoked()) != 1 {
		t.Errorf("%v, revoked %v, log %s", err, s.Revoked(), in.log.String())
	}
}

// TestSignedClientCredentials checks that every request for a token has an assertion of
// its own.
func TestSignedClientCredentials(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	fields := signingClient(t, s)
	if _, err := in.Create(t.Context(), in.owner, connection.New{Name: "shop", Auth: integration.OAuth2, Fields: fields, Definition: definition(s, privateKeyJWT)}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := in.call(in.parts, s, "shop"); err != nil {
			t.Fatal(err)
		}
		s.ExpireAll()
	}
	if n := s.Requests("client_credentials"); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// TestAudienceOfAssertions checks that an assertion is for the issuer if it is known.
func TestAudienceOfAssertions(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	fields := signingClient(t, s)
	for name, tc := range map[string]struct{ more, want string }{
		"url":    {"", s.URL + "/token"},
		"issuer": {`, "grant": "client_credentials", "issuer": "https://id.example"`, "https://id.example"},
	} {
		c, err := in.Create(t.Context(), in.owner, connection.New{Name: name, Auth: integration.OAuth2, Fields: fields, Definition: definition(s, privateKeyJWT+tc.more)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Test(t.Context(), in.owner, c.ID); err != nil {
			t.Fatal(err)
		}
		token, err := jwt.ParseSigned(s.Form("client_credentials").Get("client_assertion"), []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			t.Fatal(err)
		}
		var claims map[string]any
		if err := token.UnsafeClaimsWithoutVerification(&claims); err != nil || claims["aud"] != tc.want {
			t.Errorf("%s: %v, %v", name, claims, err)
		}
	}
}

// TestSignedClientFields checks what a client that signs needs, and that neither the key
// nor an assertion appears in an error.
func TestSignedClientFields(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	fields := signingClient(t, s)
	create := func(name string, fields map[string]string, more string) error {
		_, err := in.Create(t.Context(), in.owner, connection.New{Name: name, Auth: integration.OAuth2, Fields: fields, Definition: definition(s, more)})
		return err
	}
	faulttest.Want(t, create("a", client, privateKeyJWT), fault.InvalidRequest, "/fields/private_key", "/fields/client_secret")
	faulttest.Want(t, create("a", fields, ""), fault.InvalidRequest, "/fields/client_secret", "/fields/key_id", "/fields/private_key")
	faulttest.Want(t, create("a", fields, `, "client_auth": "post"`), fault.InvalidRequest, "/definition/client_auth")
	err := create("a", map[string]string{"client_id": "c", "private_key": "not a key"}, privateKeyJWT)
	faulttest.Want(t, err, fault.InvalidRequest, "/fields/private_key")
	if strings.Contains(fmt.Sprint(err), "not a key") {
		t.Error(err)
	}
	if err := create("a", fields, privateKeyJWT); err != nil {
		t.Fatal(err)
	}
	s.Set(func(now *oauthserver.Settings) { now.Fails, now.Echoes = "invalid_client", true })
	err = in.call(in.parts, s, "a")
	if text := fmt.Sprint(err); !strings.Contains(text, "the service knows the public key") || strings.Contains(text, s.Form("client_credentials").Get("client_assertion")) {
		t.Error(err)
	}
}

// TestKeyIsNotUsedElsewhere checks that a stored key signs nothing new until it is
// entered again.
func TestKeyIsNotUsedElsewhere(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	fields := signingClient(t, s)
	c, err := in.Create(t.Context(), in.owner, connection.New{Name: "shop", Auth: integration.OAuth2, Fields: fields, Definition: definition(s, privateKeyJWT)})
	if err != nil {
		t.Fatal(err)
	}
	for _, patch := range []connection.Patch{
		{Definition: definition(s, privateKeyJWT+`, "grant": "client_credentials", "issuer": "https://id.example"`)},
		{Definition: definition(s, privateKeyJWT+`, "token_params": {"audience": "x"}`)},
		{Fields: map[string]string{"client_id": "another"}},
		{Fields: map[string]string{"key_id": "another"}},
	} {
		_, err := in.Update(t.Context(), in.owner, c.ID, patch)
		faulttest.Want(t, err, fault.InvalidRequest, "/fields/private_key")
	}
	// The other way to authenticate needs its own secret, and forgets the key.
	_, err = in.Update(t.Context(), in.owner, c.ID, connection.Patch{Definition: definition(s, "")})
	faulttest.Want(t, err, fault.InvalidRequest, "/fields/client_secret")
	now, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{Definition: definition(s, ""), Fields: map[string]string{"client_secret": oauthserver.ClientSecret}})
	if err != nil || now.Fields["key_id"] != "" {
		t.Errorf("%+v, %v", now, err)
	}
	s.Set(func(now *oauthserver.Settings) { now.Key = nil })
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Error(err)
	}
}

// TestDiscoveryOfSignedClients checks that an issuer does not choose the method by itself.
func TestDiscoveryOfSignedClients(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	at := issuer(t, map[string]string{openID: fmt.Sprintf(`{"issuer": "ISSUER", "token_endpoint": "%s/token", "token_endpoint_auth_methods_supported": ["private_key_jwt"]}`, s.URL)})
	discover := func(more string) error {
		_, err := in.Discover(t.Context(), in.owner, connection.New{
			Auth: integration.OAuth2, Definition: []byte(fmt.Sprintf(`{"hosts": ["api.example.com"], "grant": "client_credentials", "issuer": %q %s}`, at, more)),
		})
		return err
	}
	err := discover("")
	faulttest.Want(t, err, fault.InvalidRequest, "/definition/issuer")
	if !strings.Contains(fmt.Sprint(err), "set client_auth to private_key_jwt") {
		t.Error(err)
	}
	if err := discover(privateKeyJWT); err != nil {
		t.Error(err)
	}
}

// TestMaskOfPrivateKeys checks that a key is masked wherever it would appear.
func TestMaskOfPrivateKeys(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	fields := signingClient(t, s)
	if _, err := in.Create(t.Context(), in.owner, connection.New{Name: "shop", Auth: integration.OAuth2, Fields: fields, Definition: definition(s, privateKeyJWT)}); err != nil {
		t.Fatal(err)
	}
	masker, err := in.Mask(t.Context(), in.owner.Workspace.ID, []string{"shop"})
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{fields["private_key"], "it was " + strings.TrimSpace(fields["private_key"]) + "."} {
		if text := masker.Text(shown); strings.Contains(text, "PRIVATE KEY") {
			t.Errorf("shown as %q", text)
		}
	}
}
