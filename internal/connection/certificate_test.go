package connection_test

import (
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/test/certificate"
)

// TestClientCertificate checks that a server which requires a certificate is reached with
// one, beside every kind of credential, and not without.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	in, ca, clients, service := newInstallation(t), certificate.NewAuthority(t), certificate.NewAuthority(t), &tokenServer{}
	server := ca.Serve(t, clients, service)
	shown, key := clients.Client(t, "flows", time.Now().Add(time.Hour))
	keyFile, _ := connection.NewKeyFile(t)
	for _, kind := range []struct {
		auth       string
		fields     map[string]string
		definition map[string]any
	}{
		{integration.ClientCertificate, nil, nil},
		{integration.Bearer, map[string]string{"token": "a-token"}, nil},
		{integration.BasicAuth, map[string]string{"username": "ada", "password": "a-password"}, nil},
		{integration.APIKey, map[string]string{"key": "a-key"}, map[string]any{"apply": map[string]any{"headers": map[string]string{"X-Key": "${{ secret.key }}"}}}},
		{integration.OAuth2, map[string]string{"client_id": "flows", "client_secret": "an example"}, map[string]any{"token_url": server.URL + "/token"}},
		{integration.ServiceAccount, map[string]string{"key": keyFile}, map[string]any{"token_url": server.URL + "/token"}},
		{integration.AWSSigV4, map[string]string{"access_key_id": "AKID", "secret_access_key": "an example", "region": "eu"}, nil},
	} {
		for _, name := range []string{"with", "without"} {
			fields, definition := map[string]string{}, map[string]any{"hosts": []string{server.URL}, "ca": ca.PEM, "test_url": server.URL + "/me"}
			maps.Copy(fields, kind.fields)
			maps.Copy(definition, kind.definition)
			if name == "with" {
				fields["client_certificate"], fields["client_key"] = shown, key
			} else if kind.auth == integration.ClientCertificate {
				continue
			}
			c, err := in.Create(t.Context(), in.owner, connection.New{
				Name: strings.ReplaceAll(kind.auth, "_", "-") + "-" + name, Auth: kind.auth, Fields: fields, Definition: encoded(t, definition),
			})
			if err != nil {
				t.Fatalf("%s: %v", kind.auth, err)
			}
			used := in.use(c.Name, server.URL+"/resource")
			tested, err := in.Test(t.Context(), in.owner, c.ID)
			if name == "with" && (used != nil || err != nil || tested.Problem != "") {
				t.Errorf("%s: %v, %v, %s", c.Name, used, err, tested.Problem)
			}
			if name == "without" && (used == nil || err == nil && tested.Problem == "") {
				t.Errorf("%s works", c.Name)
			}
		}
	}
	for _, path := range []string{"/token", "/me", "/resource"} {
		for _, r := range service.requests(path) {
			if got := r.TLS.PeerCertificates[0].Subject.CommonName; got != "flows" {
				t.Errorf("%s was called by %s", path, got)
			}
		}
	}
}

// TestCertificateInPlaceOfASecret checks the authentication of a client at the token
// endpoint with its certificate (RFC 8705), and the endpoints that a provider has for it.
func TestCertificateInPlaceOfASecret(t *testing.T) {
	t.Parallel()
	in, ca, clients, service := newInstallation(t), certificate.NewAuthority(t), certificate.NewAuthority(t), &tokenServer{}
	server := ca.Serve(t, clients, service)
	shown, key := clients.Client(t, "flows", time.Now().Add(time.Hour))
	provider := issuer(t, map[string]string{openID: fmt.Sprintf(`{"issuer": "ISSUER", "token_endpoint": "ISSUER/token",
		"token_endpoint_auth_methods_supported": ["tls_client_auth"], "mtls_endpoint_aliases": {"token_endpoint": %q}}`, server.URL+"/token")})
	wanted, err := in.Discover(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.OAuth2, Fields: map[string]string{"client_id": "flows-client", "client_certificate": shown, "client_key": key},
		Definition: encoded(t, map[string]any{"hosts": []string{server.URL}, "issuer": provider, "grant": "client_credentials", "ca": ca.PEM}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Create(t.Context(), in.owner, wanted); err != nil {
		t.Fatal(err)
	}
	if err := in.use("shop", server.URL+"/resource"); err != nil {
		t.Fatal(err)
	}
	r := service.requests("/token")[0]
	if r.PostForm.Get("client_id") != "flows-client" || r.PostForm.Has("client_secret") || r.Header.Get("Authorization") != "" {
		t.Errorf("%v, %v", r.PostForm, r.Header)
	}
	if got := service.requests("/resource")[0].Header.Get("Authorization"); got != "Bearer issued-token" {
		t.Errorf("the token sent is %q", got)
	}
	for name, fields := range map[string]map[string]string{
		"/fields/client_certificate": {"client_id": "flows-client"},
		"/fields/client_secret":      {"client_id": "flows-client", "client_certificate": shown, "client_key": key, "client_secret": "an example"},
	} {
		wanted.Name, wanted.Fields = "other", fields
		_, err := in.Create(t.Context(), in.owner, wanted)
		if failure, ok := fault.As(err); !ok || failure.Details[0].Pointer != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCertificatesAreChecked checks what is rejected when a connection is saved.
func TestCertificatesAreChecked(t *testing.T) {
	t.Parallel()
	in, ca := newInstallation(t), certificate.NewAuthority(t)
	good, key := ca.Client(t, "flows", time.Now().Add(time.Hour))
	_, otherKey := ca.Client(t, "flows", time.Now().Add(time.Hour))
	expired, expiredKey := ca.Client(t, "flows", time.Now().Add(-25*time.Hour))
	yesterday := time.Now().Add(-25 * time.Hour).UTC().Format(time.DateOnly)
	create := func(name string, fields map[string]string, hosts ...string) (connection.Connection, error) {
		return in.Create(t.Context(), in.owner, connection.New{
			Name: name, Auth: integration.ClientCertificate, Fields: fields, Definition: encoded(t, map[string]any{"hosts": hosts}),
		})
	}
	for name, tc := range map[string]struct{ certificate, key, pointer, says string }{
		"expired":                   {expired, expiredKey, "/fields/client_certificate", "expired on " + yesterday},
		"an authority that expired": {good + expired, key, "/fields/client_certificate", "expired on " + yesterday},
		"another key":               {good, otherKey, "/fields/client_key", "does not belong to the certificate"},
		"the wrong order":           {ca.PEM + good, key, "/fields/client_certificate", "must begin with the certificate of the key"},
		"an encrypted key":          {good, encrypt(t, key), "/fields/client_key", "openssl pkey -in key.pem -out decrypted.pem"},
		"a key as the certificate":  {key, key, "/fields/client_certificate", "must not contain a private key"},
		"a certificate as the key":  {good, good, "/fields/client_key", "must be a private key"},
		"no PEM":                    {good, "key.pem", "/fields/client_key", "PEM format"},
	} {
		_, err := create("shop", map[string]string{"client_certificate": tc.certificate, "client_key": tc.key}, "a.example")
		faulttest.Want(t, err, fault.InvalidRequest, tc.pointer)
		if failure, ok := fault.As(err); ok && !strings.Contains(failure.Details[0].Message, tc.says) {
			t.Errorf("%s: %s", name, failure.Details[0].Message)
		}
	}
	pair := map[string]string{"client_certificate": good, "client_key": key}
	_, err := create("shop", pair, "a.example", "http://b.example")
	faulttest.Want(t, err, fault.InvalidRequest, "/definition/hosts")
	c, err := create("shop", pair, "a.example")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.CertificateExpiresAt(); got == nil || time.Until(*got) > time.Hour || time.Until(*got) < time.Minute {
		t.Errorf("it expires %v", got)
	}
	if strings.Contains(fmt.Sprint(c), key) {
		t.Error("the connection shows its key")
	}
}

// encrypt encrypts a key as people do it.
func encrypt(t *testing.T, key string) string {
	t.Helper()
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		return strings.ReplaceAll(key, "PRIVATE KEY", "ENCRYPTED PRIVATE KEY")
	}
	command := exec.CommandContext(t.Context(), openssl, "pkey", "-aes256", "-passout", "pass:example")
	command.Stdin = strings.NewReader(key)
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestChangeOfCertificate checks that a change of the certificate must contain the secrets
// again, as every other change of how they are used, and that it can be removed.
func TestChangeOfCertificate(t *testing.T) {
	t.Parallel()
	in, ca := newInstallation(t), certificate.NewAuthority(t)
	first, firstKey := ca.Client(t, "first", time.Now().Add(time.Hour))
	second, secondKey := ca.Client(t, "second", time.Now().Add(time.Hour))
	c, err := in.Create(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.Bearer, Fields: map[string]string{"token": "a-token", "client_certificate": first, "client_key": firstKey},
		Definition: encoded(t, map[string]any{"hosts": []string{"a.example"}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	patch := func(fields map[string]string) error {
		_, err := in.Update(t.Context(), in.owner, c.ID, connection.Patch{Fields: fields})
		return err
	}
	faulttest.Want(t, patch(map[string]string{"client_certificate": second}), fault.InvalidRequest, "/fields/token", "/fields/client_key")
	faulttest.Want(t, patch(map[string]string{"client_key": secondKey}), fault.InvalidRequest, "/fields/client_key")
	faulttest.Want(t, patch(map[string]string{"client_certificate": second, "client_key": secondKey}), fault.InvalidRequest, "/fields/token")
	faulttest.Want(t, patch(map[string]string{"client_certificate": ""}), fault.InvalidRequest, "/fields/token", "/fields/client_key")
	faulttest.Want(t, patch(map[string]string{"client_certificate": "", "client_key": ""}), fault.InvalidRequest, "/fields/token")
	for _, fields := range []map[string]string{
		{"client_certificate": second, "client_key": secondKey, "token": "a-token"},
		{"token": "another-token"},
		{"client_certificate": "", "client_key": "", "token": "a-token"},
	} {
		if err := patch(fields); err != nil {
			t.Error(err)
		}
	}
	now, err := in.Get(t.Context(), in.owner, c.ID)
	if err != nil || now.CertificateExpiresAt() != nil {
		t.Errorf("%+v, %v", now, err)
	}
}

// TestRedirectSeesNoCertificate checks that a redirect to another host shows no
// certificate there.
func TestRedirectSeesNoCertificate(t *testing.T) {
	t.Parallel()
	in, ca, clients, elsewhere := newInstallation(t), certificate.NewAuthority(t), certificate.NewAuthority(t), &tokenServer{}
	other := ca.Serve(t, clients, elsewhere)
	server := ca.Serve(t, clients, http.RedirectHandler(other.URL+"/away", http.StatusTemporaryRedirect))
	shown, key := clients.Client(t, "flows", time.Now().Add(time.Hour))
	for name, hosts := range map[string][]string{"one-host": {server.URL}, "both-hosts": {server.URL, other.URL}} {
		if _, err := in.Create(t.Context(), in.owner, connection.New{
			Name: name, Auth: integration.ClientCertificate, Fields: map[string]string{"client_certificate": shown, "client_key": key},
			Definition: encoded(t, map[string]any{"hosts": hosts, "ca": ca.PEM}),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.use("one-host", server.URL); err == nil || len(elsewhere.requests("/away")) > 0 {
		t.Errorf("the other server was reached: %v", err)
	}
	if err := in.use("both-hosts", server.URL); err != nil {
		t.Error(err)
	}
}
