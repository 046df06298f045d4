package egress_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key, der := sign(t, template, nil)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// issue returns a certificate, self-signed if the authority is nil.
func (a *authority) issue(t *testing.T, until time.Time, hosts ...string) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: hosts[0]},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	key, der := sign(t, template, a)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func sign(t *testing.T, template *x509.Certificate, by *authority) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if by == nil {
		by = &authority{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

func serveTLS(t *testing.T, config *tls.Config, handler http.HandlerFunc) (port uint16) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	server.Listener = listen(t, outside+":0")
	server.TLS = config
	server.EnableHTTP2 = len(config.NextProtos) == 0
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	return portOf(server.Listener.Addr())
}

func TestTLSVerification(t *testing.T) {
	t.Parallel()
	ca, tomorrow := newAuthority(t), time.Now().Add(24*time.Hour)
	good := ca.issue(t, tomorrow, "host.test", outside)
	client := newClient(t, egress.Config{Policy: internet, RootCAs: ca.pool(), Resolver: names{"host.test": {outside}}})
	for _, tc := range []struct {
		name   string
		config *tls.Config
		says   string
	}{
		{"good", &tls.Config{Certificates: []tls.Certificate{good}}, ""},
		{"TLS 1.2", &tls.Config{Certificates: []tls.Certificate{good}, MaxVersion: tls.VersionTLS12}, ""},
		{"HTTP/1.1", &tls.Config{Certificates: []tls.Certificate{good}, NextProtos: []string{"http/1.1"}}, ""},
		{"expired", &tls.Config{Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(-time.Hour), "host.test")}}, "expired"},
		{"wrong name", &tls.Config{Certificates: []tls.Certificate{ca.issue(t, tomorrow, "other.test")}}, "another name"},
		{"self-signed", &tls.Config{Certificates: []tls.Certificate{(*authority)(nil).issue(t, tomorrow, "host.test")}}, "not signed by a trusted authority"},
		{"other authority", &tls.Config{Certificates: []tls.Certificate{newAuthority(t).issue(t, tomorrow, "host.test")}}, "not signed by a trusted authority"},
		{"TLS 1.0", &tls.Config{Certificates: []tls.Certificate{good}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}, "1.2 or later"},
		{"TLS 1.1", &tls.Config{Certificates: []tls.Certificate{good}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, "1.2 or later"},
		{"client certificate", &tls.Config{Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}, "require a client certificate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			port := serveTLS(t, tc.config, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.ProtoMajor) })
			resp, err := get(t, client, fmt.Sprintf("https://host.test:%d/?key=%s", port, secret))
			if tc.says != "" {
				if e := wantError(t, err, egress.TLSFailed); !strings.Contains(e.Message, tc.says) || !strings.Contains(e.Message, "host.test") {
					t.Errorf("the message is %q", e.Message)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if version := map[bool]string{true: "2", false: "1"}[tc.config.NextProtos == nil]; string(resp.Body) != version {
				t.Errorf("spoke HTTP/%s, want %s", resp.Body, version)
			}
			for _, host := range []string{"host.test.", outside} {
				if tc.name == "good" {
					mustGet(t, client, fmt.Sprintf("https://%s:%d/", host, port))
				}
			}
		})
	}
}

func TestSystemRootsDoNotTrustTheTestCertificate(t *testing.T) {
	t.Parallel()
	port := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{newAuthority(t).issue(t, time.Now().Add(time.Hour), outside)}}, hello)
	_, err := get(t, newClient(t, egress.Config{Policy: internet}), fmt.Sprintf("https://%s:%d/", outside, port))
	wantError(t, err, egress.TLSFailed)
}

func TestHandshakeFailures(t *testing.T) {
	t.Parallel()
	client := newClient(t, egress.Config{Policy: internet})
	for name, tc := range map[string]struct {
		write func(net.Conn)
		code  egress.Code
	}{
		"plain HTTP": {func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }, egress.TLSFailed},
		"closed":     {func(net.Conn) {}, egress.ConnectionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := get(t, client, strings.Replace(rawServer(t, tc.write), "http:", "https:", 1))
			wantError(t, err, tc.code)
		})
	}
}

func TestRejectsRedirectsFromHTTPSToHTTP(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	decoy := decoyOn(t, listen(t, outside+":0"))
	down := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour), "host.test")}},
		func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, fmt.Sprintf("http://host.test:%d/", decoy.port), http.StatusFound)
		})
	var got http.Header
	end := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour), "host.test")}},
		func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	up := serve(t, outside, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, fmt.Sprintf("https://host.test:%d/", end), http.StatusFound)
	})
	client := newClient(t, egress.Config{Policy: internet, RootCAs: ca.pool(), Resolver: names{"host.test": {outside}}})
	request := egress.Request{FollowRedirects: true, Header: http.Header{"Authorization": {secret}}}

	request.URL = fmt.Sprintf("https://host.test:%d/", down)
	_, err := client.Do(t.Context(), request)
	wantError(t, err, egress.Denied)

	request.URL = fmt.Sprintf("http://host.test:%d/", portOf(up.Listener.Addr()))
	if _, err := client.Do(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if got == nil || got.Get("Authorization") != "" {
		t.Errorf("on another port arrived %v", got)
	}
}

// A test cannot listen on the default ports, so this tests the rule for a
// redirect from http to https directly.
func TestRedirectsToHTTPSKeepCredentials(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		from, to string
		same     bool
	}{
		{"http://a.test/", "https://a.test/", true},
		{"http://a.test:80/", "https://A.test.:443/", true},
		{"http://a.test/", "https://a.test:8443/", false},
		{"http://a.test:443/", "https://a.test:443/", false},
		{"https://a.test/", "https://b.test/", false},
		{"https://a.test/", "https://x.a.test/", false},
	} {
		if got := egress.SameHost(parse(t, tc.from), parse(t, tc.to)); got != tc.same {
			t.Errorf("%s to %s: %t", tc.from, tc.to, got)
		}
	}
}

func TestLimitsOversizedResponsesOverHTTP2(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	port := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour), outside)}},
		func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/body":
				io.Copy(w, zeroes{})
			case "/headers", "/too-many-headers":
				for i := range 70 * len(r.URL.Path) / len("/headers") {
					w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("a", 1024))
				}
			case "/1xx":
				w.Header().Set("Link", strings.Repeat("a", 1024))
				for range 1000 {
					w.WriteHeader(http.StatusEarlyHints)
				}
			case "/silent":
				<-r.Context().Done()
			case "/drip":
				for r.Context().Err() == nil {
					fmt.Fprint(w, "a")
					w.(http.Flusher).Flush()
					time.Sleep(20 * time.Millisecond)
				}
			case "/abort":
				fmt.Fprint(w, "a")
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
		})
	client := newClient(t, egress.Config{Policy: internet, RootCAs: ca.pool()})
	for path, code := range map[string]egress.Code{
		"/body":             egress.ResponseTooLarge,
		"/headers":          egress.ResponseTooLarge,
		"/too-many-headers": egress.InvalidResponse,
		"/1xx":              egress.ResponseTooLarge,
		"/silent":           egress.TimedOut,
		"/drip":             egress.TimedOut,
		"/abort":            egress.ConnectionFailed,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			url := fmt.Sprintf("https://%s/%s", netip.AddrPortFrom(netip.MustParseAddr(outside), port), path[1:])
			timeout := 3 * time.Minute
			if code == egress.TimedOut {
				timeout = 300 * time.Millisecond
			}
			_, err := client.Do(t.Context(), egress.Request{Workspace: path, URL: url, Timeout: timeout})
			wantError(t, err, code)
		})
	}
}
