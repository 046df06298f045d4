package egress_test

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/test/lane"
)

// testProxy is an HTTP proxy that only supports CONNECT. It records the targets.
type testProxy struct {
	url     *url.URL
	mu      sync.Mutex
	targets []string
	auth    []string
}

// startProxy starts a proxy, with TLS if it has a configuration.
func startProxy(t *testing.T, config *tls.Config) *testProxy {
	t.Helper()
	p, scheme := &testProxy{}, "http"
	listener := listen(t, "127.0.0.1:0")
	address := listener.Addr().String()
	if config != nil {
		listener, scheme = tls.NewListener(listener, config), "https"
	}
	p.url = &url.URL{Scheme: scheme, Host: address}
	server := &http.Server{Handler: http.HandlerFunc(p.serve)}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return p
}

func (p *testProxy) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.targets, p.auth = append(p.targets, r.Method+" "+r.Host), append(p.auth, r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	target, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, "cannot connect: "+secret, http.StatusBadGateway)
		return
	}
	defer target.Close()
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	done := make(chan struct{})
	go func() {
		io.Copy(target, buffered)
		target.(*net.TCPConn).CloseWrite()
		close(done)
	}()
	io.Copy(conn, target)
	conn.Close()
	<-done
}

// seen returns the targets so far.
func (p *testProxy) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.targets)
}

// The proxy gets the address that was checked. The server sees the name, in the header
// Host and in the TLS handshake.
func TestProxy(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	certificate := ca.issue(t, time.Now().Add(time.Hour), "host.test")
	host := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Host, " ", r.Header.Get("Proxy-Authorization"))
	}
	plain := portOf(serve(t, outside, host).Listener.Addr())
	secure := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{certificate}}, host)
	local := ca.issue(t, time.Now().Add(time.Hour), "proxy.test", "127.0.0.1")
	for name, proxy := range map[string]*testProxy{
		"http":  startProxy(t, nil),
		"https": startProxy(t, &tls.Config{Certificates: []tls.Certificate{local}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy.url.User = url.UserPassword("user", secret)
			client := newClient(t, egress.Config{Policy: internet, RootCAs: ca.pool(), Proxy: proxy.url, Resolver: names{"host.test": {outside}}})
			var want []string
			for scheme, port := range map[string]any{"http": plain, "https": secure} {
				at := fmt.Sprintf("host.test:%d", port)
				if resp := mustGet(t, client, scheme+"://"+at+"/"); string(resp.Body) != at+" " {
					t.Errorf("%s: the server got %q", scheme, resp.Body)
				}
				want = append(want, fmt.Sprintf("CONNECT %s:%d", outside, port))
			}
			if got := proxy.seen(); !slices.Equal(got, want) {
				t.Errorf("the proxy got %q, want %q", got, want)
			}
			for _, auth := range proxy.auth {
				if auth != "Basic "+base64.StdEncoding.EncodeToString([]byte("user:"+secret)) {
					t.Errorf("the proxy got the authorization %q", auth)
				}
			}
		})
	}
}

func TestProxyErrors(t *testing.T) {
	t.Parallel()
	respond := func(text string) *url.URL {
		listener := listen(t, "127.0.0.1:0")
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
						io.WriteString(conn, text)
					}
				}()
			}
		}()
		return &url.URL{Scheme: "http", Host: listener.Addr().String()}
	}
	for name, test := range map[string]struct {
		proxy *url.URL
		code  egress.Code
		says  string
	}{
		"refused":            {&url.URL{Scheme: "http", Host: "127.0.0.1" + refusing}, egress.ConnectionFailed, "could not connect to the egress proxy: connection refused"},
		"unknown host":       {&url.URL{Scheme: "http", Host: "proxy.invalid:3128"}, egress.ConnectionFailed, "could not connect to the egress proxy"},
		"no TLS":             {&url.URL{Scheme: "https", Host: respond("").Host}, egress.ConnectionFailed, "the egress proxy"},
		"407":                {respond("HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n"), egress.ConnectionFailed, "rejected its user name or password (407)"},
		"403":                {respond("HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\n\r\n" + secret), egress.Denied, "does not allow connections"},
		"502":                {respond("HTTP/1.1 502 Bad Gateway\r\n\r\n"), egress.ConnectionFailed, "could not connect to the host (502 Bad Gateway)"},
		"504":                {respond("HTTP/1.1 504 Gateway Timeout\r\n\r\n"), egress.TimedOut, "in time (504)"},
		"closed":             {respond(""), egress.ConnectionFailed, "the egress proxy closed the connection"},
		"no HTTP":            {respond("220 mail.test " + secret + "\r\n\r\n"), egress.ConnectionFailed, "the egress proxy did not send a valid HTTP response"},
		"an endless header":  {respond("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20)), egress.ConnectionFailed, "the egress proxy"},
		"data after the 200": {respond("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), egress.ConnectionFailed, "sent data before the request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.proxy.User = url.UserPassword("user", secret)
			client := newClient(t, egress.Config{Policy: internet, Proxy: test.proxy, Resolver: names{"host.test": {outside}}})
			_, err := get(t, client, "http://host.test/")
			if e := wantError(t, err, test.code); !strings.Contains(e.Message, test.says) {
				t.Errorf("the message is %q, want %q", e.Message, test.says)
			}
			if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, test.proxy.Host) {
				t.Errorf("%s reveals the address of the proxy", text)
			}
		})
	}
}

func TestSilentProxy(t *testing.T) {
	t.Parallel()
	silent := &url.URL{Scheme: "http", Host: listen(t, "127.0.0.1:0").Addr().String()}
	client := newClient(t, egress.Config{Policy: internet, Proxy: silent, Limits: egress.Limits{Connect: 50 * time.Millisecond}})
	_, err := get(t, client, "http://"+outside+"/")
	if e := wantError(t, err, egress.TimedOut); !strings.Contains(e.Message, "the egress proxy did not connect to "+outside) {
		t.Errorf("the message is %q", e.Message)
	}
}

// A reserved target never gets to the proxy.
func TestProxyIsNotAskedForReservedTargets(t *testing.T) {
	t.Parallel()
	proxy := startProxy(t, nil)
	client := newClient(t, egress.Config{Policy: internet, Proxy: proxy.url, Resolver: names{"host.test": {"127.0.0.1", "10.0.0.1"}}})
	for _, target := range []string{"http://host.test/", "https://host.test/", "http://127.0.0.1/", "http://localhost/", proxy.url.String()} {
		_, err := get(t, client, target)
		wantError(t, err, egress.Denied)
	}
	if got := proxy.seen(); len(got) > 0 {
		t.Errorf("the proxy was asked for %q", got)
	}
}

// throughProxy is the environment variable that makes the clients of all tests use a
// proxy.
const throughProxy = "EGRESS_TEST_THROUGH_PROXY"

// The guard is the same with a proxy: all tests, above all those of hostile targets,
// also pass through one. Left out are this one, and those that check messages in which
// the proxy appears.
func TestEverythingThroughAProxy(t *testing.T) {
	t.Parallel()
	lane.NotShort(t)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.skip=^Test(EverythingThroughAProxy|ConnectionErrors|FallsBackToTheNextAddress|TimeoutOfEachStage)$")
	child.Env = append(os.Environ(), throughProxy+"=1")
	out, err := child.CombinedOutput()
	if passed := strings.Count(string(out), "\n--- PASS"); err != nil || passed < 40 {
		t.Errorf("%v, %d tests passed:\n%s", err, passed, out)
	}
}
