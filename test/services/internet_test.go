// Package services_test runs the operations of integrations with the real server, against
// servers that stand for those of the services.
package services_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/certificate"
	"github.com/stepmill/stepmill/test/harness"
)

// internet is a proxy behind which every host has a certificate, and one handler serves
// all of them. The handler tells them apart by the host of the request.
type internet struct {
	proxy     *httptest.Server
	authority *certificate.Authority
	handler   http.Handler
}

func newInternet(t *testing.T, handler http.HandlerFunc) *internet {
	t.Helper()
	i := &internet{authority: certificate.NewAuthority(t), handler: handler}
	i.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { i.connect(t, w, r) }))
	t.Cleanup(func() {
		i.proxy.CloseClientConnections()
		i.proxy.Close()
	})
	return i
}

// connect answers a CONNECT request and serves the requests that come through it.
func (i *internet) connect(t *testing.T, w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	raw, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer raw.Close()
	fmt.Fprint(raw, "HTTP/1.1 200 Connection established\r\n\r\n")
	conn := tls.Server(raw, &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		issued := i.authority.Server(t, hello.ServerName)
		return &issued, nil
	}})
	defer conn.Close()
	for reader := bufio.NewReader(conn); ; {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		answer := httptest.NewRecorder()
		i.handler.ServeHTTP(answer, request)
		result := answer.Result()
		result.ContentLength = int64(answer.Body.Len())
		if result.Write(conn) != nil {
			return
		}
	}
}

// start starts a server that reaches this internet and no other.
func (i *internet) start(t *testing.T) *harness.Server {
	t.Helper()
	return i.startIn(t, t.TempDir())
}

// startIn starts such a server with a data directory.
func (i *internet) startIn(t *testing.T, dir string) *harness.Server {
	t.Helper()
	return i.startWith(t, dir, "at_start@nobody:exit")
}

// startAt starts such a server whose clock begins at a time.
func (i *internet) startAt(t *testing.T, at time.Time) *harness.Server {
	t.Helper()
	return i.startBy(t, harness.Options{Dir: t.TempDir(), Failpoint: "at_start@nobody:exit", Env: []string{"FP_CLOCK=" + time.Until(at).Round(time.Second).String()}})
}

// startWith starts such a server with further arguments that dies at a failpoint.
func (i *internet) startWith(t *testing.T, dir, failpoint string, args ...string) *harness.Server {
	t.Helper()
	return i.startBy(t, harness.Options{Dir: dir, Args: args, Failpoint: failpoint})
}

func (i *internet) startBy(t *testing.T, o harness.Options) *harness.Server {
	t.Helper()
	trusted := filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(trusted, []byte(i.authority.PEM), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Args = append(o.Args, "--egress-proxy="+i.proxy.URL)
	// Names need an address that requests may be sent to; only the proxy sees it.
	o.Env = append(o.Env, "SSL_CERT_FILE="+trusted, "FP_ADDRESS=8.8.8.8")
	return harness.StartWith(t, o)
}
