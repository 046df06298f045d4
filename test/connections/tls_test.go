package connections_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/certificate"
	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// visitors records who has called a server: the names in their client certificates, and
// "nobody" for callers without one.
type visitors struct {
	mu    sync.Mutex
	names []string
}

func (v *visitors) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	name := "nobody"
	if len(r.TLS.PeerCertificates) > 0 {
		name = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.names = append(v.names, name)
}

// seen returns who has called since the last time.
func (v *visitors) seen() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := strings.Join(v.names, " ")
	v.names = nil
	return out
}

// call runs a workflow that sends one request, and returns the code of its error or "".
func call(t *testing.T, s *harness.Server, connection, target string) string {
	t.Helper()
	step := flow.HTTP("call", target)
	if connection != "" {
		step["connection"] = connection
	}
	step["retry"] = map[string]any{"max_attempts": 1}
	id := startRuns(t, s.Client, flow.Define(t, s.Client, step), 1)[0]
	var d runDetail
	harness.Eventually(t, "the run ends", func() bool {
		d = get(t, s.Client, id)
		return d.Status == "succeeded" || d.Status == "failed"
	})
	if d.Error == nil {
		return ""
	}
	return d.Error.Code
}

// TestMutualTLS reaches a server with a certificate of a private authority, which requires
// a client certificate, with the connection that has both and with nothing else.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	ca, clients, here, there := certificate.NewAuthority(t), certificate.NewAuthority(t), &visitors{}, &visitors{}
	private := ca.Serve(t, clients, here)
	elsewhere := ca.Serve(t, nil, there)
	leaving := ca.Serve(t, clients, http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	staying := ca.Serve(t, clients, http.RedirectHandler(private.URL, http.StatusTemporaryRedirect))

	s := harness.Start(t, t.TempDir(), allowLoopback)
	shown, key := clients.Client(t, "flows", time.Now().Add(time.Hour))
	create := func(name string, fields map[string]string, definition map[string]any) harness.Response {
		definition["hosts"] = []string{private.URL, leaving.URL, staying.URL}
		fields["token"] = "a-token"
		return s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{"name": name, "auth": "bearer", "fields": fields, "definition": definition})
	}
	made := create("both", map[string]string{"client_certificate": shown, "client_key": key}, map[string]any{"ca": ca.PEM, "test_url": private.URL})
	create("certificate", map[string]string{"client_certificate": shown, "client_key": key}, map[string]any{})
	create("authority", map[string]string{}, map[string]any{"ca": ca.PEM})

	var c struct {
		ID                   string
		CertificateExpiresAt time.Time `json:"certificate_expires_at"`
	}
	made.Decode(t, &c)
	if left := time.Until(c.CertificateExpiresAt); left > time.Hour || left < 0 {
		t.Errorf("the certificate expires %v", c.CertificateExpiresAt)
	}
	if strings.Contains(string(made.Body), strings.Split(key, "\n")[1]) {
		t.Error("the response has the private key")
	}
	var tested struct {
		OK      bool
		Problem *string
	}
	s.Expect(t, http.StatusOK, "POST", "/v1/connections/"+c.ID+"/test", nil).Decode(t, &tested)
	if !tested.OK {
		t.Errorf("the test failed: %s", *tested.Problem)
	}

	if code := call(t, s, "both", private.URL); code != "" || here.seen() != "flows flows" {
		t.Errorf("with both: %q", code)
	}
	if code := call(t, s, "both", staying.URL); code != "" || here.seen() != "flows" {
		t.Errorf("a redirect to a host of the connection: %q", code)
	}
	for connection, target := range map[string]string{"": private.URL, "certificate": private.URL, "both": leaving.URL} {
		if code := call(t, s, connection, target); code != "tls_failed" {
			t.Errorf("%q reached %s: %q", connection, target, code)
		}
	}
	// With TLS 1.3, the refusal may arrive as a closed connection.
	if code := call(t, s, "authority", private.URL); code != "tls_failed" && code != "connection_failed" {
		t.Errorf("without a client certificate: %q", code)
	}
	if got := here.seen() + there.seen(); got != "" {
		t.Errorf("requests arrived from %s", got)
	}
}
