package egress_test

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
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
