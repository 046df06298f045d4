package egress_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/test/certificate"
)

// pem returns the certificate of the authority.
func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// serveName starts a server with a certificate of the authority for a name.
func (a *authority) serveName(t *testing.T, name string, handler http.HandlerFunc) string {
	t.Helper()
	port := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{a.issue(t, time.Now().Add(time.Hour), name)}}, handler)
	return fmt.Sprintf("%s:%d", name, port)
}

// sendTo sends a request with TLS settings for some hosts and follows redirects.
func sendTo(t *testing.T, client *egress.Client, address string, settings egress.TLS, hosts ...string) error {
	t.Helper()
	_, err := client.Do(t.Context(), egress.Request{
		Workspace: "w", URL: "https://" + address, Credential: testCredential{hosts: hosts, tls: settings}, FollowRedirects: true, Timeout: 3 * time.Minute,
	})
	return err
}

// TestOwnAuthorities checks that the authorities of a credential are trusted at its hosts,
// beside those of the machine, and by no other request.
func TestOwnAuthorities(t *testing.T) {
	t.Parallel()
	public, private, other := newAuthority(t), newAuthority(t), newAuthority(t)
	client := newClient(t, egress.Config{Policy: internet, RootCAs: public.pool(), Resolver: names{"public.test": {outside}, "private.test": {outside}}})
	atPublic, atPrivate := public.serveName(t, "public.test", hello), private.serveName(t, "private.test", hello)
	hosts := []string{atPublic, atPrivate}
	settings := egress.TLS{CAs: other.pem() + private.pem()}
	for range 2 {
		for _, address := range hosts {
			if err := sendTo(t, client, address, settings, hosts...); err != nil {
				t.Error(err)
			}
		}
		// Neither a connection that is open nor what it trusts is shared.
		for name, settings := range map[string]egress.TLS{"no settings": {}, "another authority": {CAs: other.pem()}} {
			failure := wantError(t, sendTo(t, client, atPrivate, settings, hosts...), egress.TLSFailed)
			if !strings.Contains(failure.Message, "not signed by a trusted authority") {
				t.Errorf("%s: %v", name, failure)
			}
		}
	}
	_, err := get(t, client, "https://"+atPrivate)
	wantError(t, err, egress.TLSFailed)
}

// TestSelfSignedServer checks that a server with a self-signed certificate is trusted by a
// credential that has it, for the name in it only.
func TestSelfSignedServer(t *testing.T) {
	t.Parallel()
	signed := (*authority)(nil).issue(t, time.Now().Add(time.Hour), "host.test")
	port := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{signed}}, hello)
	client := newClient(t, egress.Config{Policy: internet, Resolver: names{"host.test": {outside}, "other.test": {outside}}})
	settings := egress.TLS{CAs: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed.Certificate[0]}))}
	address, other := fmt.Sprintf("host.test:%d", port), fmt.Sprintf("other.test:%d", port)
	if err := sendTo(t, client, address, settings, address); err != nil {
		t.Error(err)
	}
	wantError(t, sendTo(t, client, other, settings, other), egress.TLSFailed)
}

// TestOwnAuthoritiesOnRedirects checks that a redirect to a host that is not one of the
// credential's does not trust its authorities.
func TestOwnAuthoritiesOnRedirects(t *testing.T) {
	t.Parallel()
	private := newAuthority(t)
	client := newClient(t, egress.Config{Policy: internet, Resolver: names{"first.test": {outside}, "second.test": {outside}}})
	second := private.serveName(t, "second.test", hello)
	first := private.serveName(t, "first.test", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://"+second, http.StatusFound)
	})
	settings := egress.TLS{CAs: private.pem()}
	wantError(t, sendTo(t, client, first, settings, first), egress.TLSFailed)
	if err := sendTo(t, client, first, settings, first, second); err != nil {
		t.Error(err)
	}
}

// TestTLSSettingsShareConnections checks which requests share connections, and that the
// number of settings with idle connections is limited.
func TestTLSSettingsShareConnections(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	url, conns := connCountingServer(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour), outside)}})
	address := strings.TrimPrefix(url, "https://")
	client := newClient(t, egress.Config{Policy: internet, RootCAs: ca.pool(), Limits: egress.Limits{TLSSettings: 2, Workspaces: 1}})
	a, b, c := egress.TLS{CAs: newAuthority(t).pem()}, egress.TLS{CAs: newAuthority(t).pem()}, egress.TLS{CAs: newAuthority(t).pem()}
	for i, call := range []struct {
		settings egress.TLS
		conns    int64
	}{
		{egress.TLS{}, 1},
		{a, 2}, {a, 2}, {b, 3}, {a, 3},
		{c, 4}, // displaces b, which was used longer ago than a
		{a, 4}, {b, 5},
		{egress.TLS{}, 5}, // settings displace nothing without settings
	} {
		if err := sendTo(t, client, address, call.settings, address); err != nil {
			t.Fatal(err)
		}
		if n := conns.Load(); n != call.conns {
			t.Errorf("after call %d there were %d connections, want %d", i, n, call.conns)
		}
	}
	if _, err := client.Do(t.Context(), egress.Request{Workspace: "another", URL: url, Credential: testCredential{hosts: []string{address}, tls: b}}); err != nil || conns.Load() != 6 {
		t.Errorf("%d connections after a call of another workspace, %v", conns.Load(), err)
	}
}

func TestParseCertificates(t *testing.T) {
	t.Parallel()
	one, two := newAuthority(t).pem(), newAuthority(t).pem()
	block := func(kind, content string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte(content)}))
	}
	for name, tc := range map[string]struct {
		text string
		n    int
		says string
	}{
		"one":                     {one, 1, ""},
		"two":                     {one + two, 2, ""},
		"text around them":        {"Issuer: C=DE\n" + one + "# the second\n" + strings.ReplaceAll(two, "\n", "\r\n"), 2, ""},
		"nothing":                 {"", 0, "PEM format"},
		"no PEM":                  {"MIIB", 0, "PEM format"},
		"the end is missing":      {one + two[:len(two)-30], 0, "number 2"},
		"no certificate in it":    {one + block("CERTIFICATE", "x"), 0, "number 2"},
		"a private key":           {one + block("EC PRIVATE KEY", secret), 0, "must not contain a private key"},
		"a key that is encrypted": {block("ENCRYPTED PRIVATE KEY", secret) + one, 0, "must not contain a private key"},
		"a request":               {block("CERTIFICATE REQUEST", "x"), 0, `not "CERTIFICATE REQUEST"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := egress.ParseCertificates(tc.text)
			if len(got) != tc.n || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%d certificates, %v", len(got), err)
			}
		})
	}
	client := newClient(t, egress.Config{Policy: internet})
	wantError(t, sendTo(t, client, outside, egress.TLS{CAs: "broken"}, outside), egress.InvalidRequest)
}

func FuzzParseCertificates(f *testing.F) {
	f.Add("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := egress.ParseCertificates(text); (len(got) == 0) != (err != nil) {
			t.Errorf("%d certificates, %v", len(got), err)
		}
	})
}

// clientPEM returns a client certificate of an authority and its key.
func clientPEM(t *testing.T, by *certificate.Authority, name string) egress.TLS {
	t.Helper()
	certificate, key := by.Client(t, name, time.Now().Add(time.Hour))
	return egress.TLS{Certificate: certificate, Key: key}
}

// shownName responds with the name in the client certificate, or "none".
func shownName(w http.ResponseWriter, r *http.Request) {
	name := "none"
	if len(r.TLS.PeerCertificates) > 0 {
		name = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	fmt.Fprint(w, name)
}

// TestClientCertificate checks that a client certificate is shown to the hosts of its
// credential and to nobody else, and that connections which showed one are not shared.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	ca, clients := newAuthority(t), certificate.NewAuthority(t)
	client := newClient(t, egress.Config{Policy: internet, RootCAs: ca.pool(), Resolver: names{"host.test": {outside}, "other.test": {outside}}})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, protocols := range [][]string{nil, {"http/1.1"}} {
			t.Run(fmt.Sprint(tls.VersionName(version), protocols), func(t *testing.T) {
				t.Parallel()
				serve := func(name string, auth tls.ClientAuthType, handler http.HandlerFunc) string {
					port := serveTLS(t, &tls.Config{
						Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour), name)}, ClientAuth: auth,
						ClientCAs: clients.Pool(), MinVersion: version, MaxVersion: version, NextProtos: protocols,
					}, handler)
					return fmt.Sprintf("%s:%d", name, port)
				}
				other := serve("other.test", tls.RequestClientCert, shownName)
				host := serve("host.test", tls.VerifyClientCertIfGiven, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/away" {
						http.Redirect(w, r, "https://"+other, http.StatusTemporaryRedirect)
						return
					}
					shownName(w, r)
				})
				shown := func(path string, settings egress.TLS) string {
					resp, err := client.Do(t.Context(), egress.Request{
						Workspace: "w", URL: "https://" + host + path, Credential: testCredential{hosts: []string{host}, tls: settings}, FollowRedirects: true, Timeout: 3 * time.Minute,
					})
					if err != nil {
						t.Fatal(err)
					}
					return string(resp.Body)
				}
				ada, bob := clientPEM(t, clients, "ada"), clientPEM(t, clients, "bob")
				for range 2 {
					if got := []string{shown("/", ada), shown("/", egress.TLS{}), shown("/", bob), shown("/away", ada)}; !slices.Equal(got, []string{"ada", "none", "bob", "none"}) {
						t.Errorf("the certificates shown were %v", got)
					}
				}
			})
		}
	}
}

// TestClientCertificateIsRejected checks what people are told. A server that speaks TLS
// 1.3 may close the connection before its reason arrives, so this is with TLS 1.2.
func TestClientCertificateIsRejected(t *testing.T) {
	t.Parallel()
	ca, clients := newAuthority(t), certificate.NewAuthority(t)
	client := newClient(t, egress.Config{Policy: internet, RootCAs: ca.pool()})
	port := serveTLS(t, &tls.Config{
		Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour), outside)}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: clients.Pool(), MaxVersion: tls.VersionTLS12,
	}, hello)
	address := fmt.Sprintf("%s:%d", outside, port)
	if err := sendTo(t, client, address, clientPEM(t, clients, "ada"), address); err != nil {
		t.Error(err)
	}
	for name, tc := range map[string]struct {
		settings egress.TLS
		says     string
	}{
		"none":              {egress.TLS{}, "require a client certificate"},
		"another authority": {clientPEM(t, certificate.NewAuthority(t), "eve"), "does not know the authority"},
	} {
		if failure := wantError(t, sendTo(t, client, address, tc.settings, address), egress.TLSFailed); !strings.Contains(failure.Message, tc.says) {
			t.Errorf("%s: %v", name, failure)
		}
	}
}

// TestProxySeesNoClientCertificate checks that the certificate of a credential is for its
// host, not for a proxy on the way there.
func TestProxySeesNoClientCertificate(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	var shown atomic.Int64
	proxy := startProxy(t, &tls.Config{
		Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour), "127.0.0.1", outside)}, ClientAuth: tls.RequestClientCert,
		VerifyConnection: func(state tls.ConnectionState) error {
			shown.Add(int64(len(state.PeerCertificates)))
			return nil
		},
	})
	client := newClient(t, egress.Config{Policy: internet, RootCAs: ca.pool(), Proxy: proxy.url})
	port := serveTLS(t, &tls.Config{
		Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour), outside)}, ClientAuth: tls.RequireAnyClientCert,
	}, hello)
	address := fmt.Sprintf("%s:%d", outside, port)
	if err := sendTo(t, client, address, clientPEM(t, certificate.NewAuthority(t), "ada"), address); err != nil {
		t.Error(err)
	}
	if n := shown.Load(); n != 0 {
		t.Errorf("the proxy was shown %d certificates", n)
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, content []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
	}
	pkcs8 := func(key any) string {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return block("PRIVATE KEY", der, err)
	}
	sec1, err := x509.MarshalECPrivateKey(ecKey)
	ec := block("EC PRIVATE KEY", sec1, err)
	legacy := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00"}, Bytes: []byte(secret)}))
	for name, tc := range map[string]struct{ text, says string }{
		"RSA, PKCS #8":            {pkcs8(rsaKey), ""},
		"ECDSA, PKCS #8":          {pkcs8(ecKey), ""},
		"Ed25519, PKCS #8":        {pkcs8(edKey), ""},
		"RSA, PKCS #1":            {block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey), nil), ""},
		"ECDSA, SEC 1":            {ec, ""},
		"parameters before it":    {block("EC PARAMETERS", []byte{6, 5}, nil) + ec, ""},
		"a certificate before it": {newAuthority(t).pem() + ec, ""},
		"encrypted, PKCS #8":      {block("ENCRYPTED PRIVATE KEY", []byte(secret), nil), "openssl pkey"},
		"encrypted, PKCS #1":      {legacy, "openssl pkey"},
		"a certificate":           {newAuthority(t).pem(), "must be a private key in PEM"},
		"for SSH":                 {block("OPENSSH PRIVATE KEY", []byte(secret), nil), "SSH"},
		"damaged":                 {block("PRIVATE KEY", []byte(secret), nil), "cannot be read"},
		"nothing":                 {"", "must be a private key in PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := egress.ParseKey(tc.text)
			switch {
			case tc.says == "" && (err != nil || key == nil):
				t.Error(err)
			case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), secret)):
				t.Errorf("the error is %v", err)
			}
		})
	}
}
