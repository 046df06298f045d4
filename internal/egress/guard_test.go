package egress_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
)

func TestRejectsURLsOtherThanHTTP(t *testing.T) {
	t.Parallel()
	decoy := newDecoy(t)
	client := newClient(t, egress.Config{Policy: loopback})
	at := fmt.Sprintf("127.0.0.1:%d", decoy.port)
	for url, code := range map[string]egress.Code{
		"file:///etc/passwd":               egress.Denied,
		"file://" + at + "/x":              egress.Denied,
		"gopher://" + at:                   egress.Denied,
		"ftp://" + at:                      egress.Denied,
		"unix:///var/run/docker.sock":      egress.Denied,
		"ws://" + at:                       egress.Denied,
		"javascript:alert(1)":              egress.Denied,
		"data:text/plain,x":                egress.Denied,
		"http+unix://" + at:                egress.Denied,
		"http://user@" + at:                egress.Denied,
		"http://user:" + secret + "@" + at: egress.Denied,
		"https://:@" + at:                  egress.Denied,
		"http://127.0.0.1:0/":              egress.Denied,
		"":                                 egress.InvalidRequest,
		"/path":                            egress.InvalidRequest,
		"//" + at:                          egress.InvalidRequest,
		at:                                 egress.InvalidRequest,
		"http:" + at:                       egress.InvalidRequest,
		"http://":                          egress.InvalidRequest,
		"http:///x":                        egress.InvalidRequest,
		"http://:80/":                      egress.InvalidRequest,
		"http://127.0.0.1:65536/":          egress.InvalidRequest,
		"http://127.0.0.1:x/?" + secret:    egress.InvalidRequest,
		"http://a b/?" + secret:            egress.InvalidRequest,
		"http://a\r\nb/":                   egress.InvalidRequest,
		"http://a/\r\nX: y":                egress.InvalidRequest,
		"http://a/%zz" + secret:            egress.InvalidRequest,
		"http://%31%32%37.0.0.1/":          egress.InvalidRequest,
		"http://127%2e0%2e0%2e1/":          egress.InvalidRequest,
		"http://[::1/":                     egress.InvalidRequest,
		"http://" + strings.Repeat("a.", 200) + "test/": egress.InvalidRequest,
	} {
		t.Run(url, func(t *testing.T) {
			_, err := get(t, client, url)
			wantError(t, err, code)
		})
	}
}

func TestLowPortsNeedAnAllowedRange(t *testing.T) {
	t.Parallel()
	named := newClient(t, egress.Config{Policy: loopback})
	unnamed := newClient(t, egress.Config{Resolver: names{"host.test": {"93.184.216.34"}}})
	for _, port := range []int{1, 21, 22, 23, 25, 53, 79, 81, 110, 143, 389, 442, 444, 445, 465, 587, 993, 1023} {
		for _, host := range []string{"93.184.216.34", "[2606:2800:220:1::1]", "host.test"} {
			_, err := get(t, unnamed, fmt.Sprintf("http://%s:%d/", host, port))
			if e := wantError(t, err, egress.Denied); !strings.Contains(e.Message, "80 and 443") {
				t.Errorf("the message is %q", e.Message)
			}
		}
		_, err := get(t, named, fmt.Sprintf("http://127.9.9.9:%d/", port))
		if e, failed := errors.AsType[*egress.Error](err); failed && e.Code == egress.Denied {
			t.Error(err)
		}
	}
}

func TestNeverReachesTheServiceItself(t *testing.T) {
	t.Parallel()
	decoy := newDecoy(t)
	v4, v6 := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")
	everything := egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}
	local := []string{"127.0.0.1", "127.0.0.2", "127.255.0.1", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "localhost", "own.test"}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range addrs {
		if ip := netip.MustParsePrefix(addr.String()).Addr(); ip.Is4() {
			local = append(local, ip.String())
		} else {
			local = append(local, "["+ip.String()+"]")
		}
	}
	for _, tc := range []struct {
		own   netip.Addr
		hosts []string
	}{
		{netip.IPv4Unspecified(), local},
		{netip.IPv6Unspecified(), local},
		{v4, []string{"127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::]", "own.test"}},
		{netip.AddrFrom16(v4.As16()), []string{"127.0.0.1", "0.0.0.0"}},
		{v6, []string{"[::1]", "[::]", "0.0.0.0"}},
	} {
		client := newClient(t, egress.Config{
			Policy:   everything,
			Own:      func() []netip.AddrPort { return []netip.AddrPort{netip.AddrPortFrom(tc.own, decoy.port)} },
			Resolver: names{"own.test": {"127.0.0.1"}, "localhost": {"127.0.0.1"}},
		})
		for _, host := range tc.hosts {
			_, err := get(t, client, fmt.Sprintf("http://%s:%d/", host, decoy.port))
			wantError(t, err, egress.Denied)
		}
	}
}

func TestAllowCanOpenTheServicesMachine(t *testing.T) {
	t.Parallel()
	server := serve(t, "127.0.0.1", hello)
	port := portOf(server.Listener.Addr())
	own := func() []netip.AddrPort {
		return []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), port+1), netip.MustParseAddrPort("127.0.0.2:" + fmt.Sprint(port))}
	}
	mustGet(t, newClient(t, egress.Config{Policy: loopback, Own: own}), server.URL)
}

// net/http reads the environment only once per process, so this test runs in a
// child process.
func TestIgnoresTheProxyEnvironment(t *testing.T) {
	t.Parallel()
	if os.Getenv("ALL_PROXY") == "" {
		decoy := decoyOn(t, listen(t, outside+":0"))
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), "NO_PROXY=", "no_proxy=")
		for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
			child.Env = append(child.Env, fmt.Sprintf("%s=http://%s:%d", name, outside, decoy.port))
		}
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	ca := newAuthority(t)
	secure := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour), "host.test")}}, hello)
	plain := portOf(serve(t, outside, hello).Listener.Addr())
	client := newClient(t, egress.Config{Policy: internet, RootCAs: ca.pool(), Resolver: names{"host.test": {outside}}})
	for _, url := range []string{fmt.Sprintf("http://host.test:%d/", plain), fmt.Sprintf("https://host.test:%d/", secure)} {
		if resp := mustGet(t, client, url); string(resp.Body) != "hello" {
			t.Errorf("the response is %q", resp.Body)
		}
	}
}

func TestConnectionErrors(t *testing.T) {
	t.Parallel()
	client := newClient(t, egress.Config{Policy: internet})
	_, err := get(t, client, "http://"+outside+refusing+"/?"+secret)
	if e := wantError(t, err, egress.ConnectionFailed); !strings.Contains(e.Message, "could not connect to 127.1.0.1: connection refused") {
		t.Errorf("the message is %q", e.Message)
	}

	for name, write := range map[string]func(net.Conn){
		"closed at once":     func(net.Conn) {},
		"closed in a header": func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nX-Y: ") },
		"closed in the body": func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc") },
		"closed in a chunk":  func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc") },
		"reset":              func(conn net.Conn) { conn.(*net.TCPConn).SetLinger(0) },
		"reset during the response": func(conn net.Conn) {
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
			conn.(*net.TCPConn).SetLinger(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := get(t, client, rawServer(t, write))
			wantError(t, err, egress.ConnectionFailed)
		})
	}
	for name, answer := range map[string]string{
		"no HTTP":          "220 mail.test ESMTP " + secret + "\r\n",
		"no status":        "HTTP/1.1 abc " + secret + "\r\n\r\n",
		"binary":           "\x15\x03\x01\x00\x02\x02\x16\r\n",
		"two lengths":      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"negative length":  "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"bad chunk":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
		"bad coding":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: rot13\r\n\r\nabc",
		"bad header":       "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"another protocol": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
		"bad gzip":         "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
		"half a gzip":      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := get(t, client, rawServer(t, func(conn net.Conn) { fmt.Fprint(conn, answer); conn.Read(make([]byte, 1)) }))
			wantError(t, err, egress.InvalidResponse)
		})
	}
}

func TestTimeoutOfEachStage(t *testing.T) {
	t.Parallel()
	silent := rawServer(t, func(conn net.Conn) { conn.Read(make([]byte, 1)) })
	for _, tc := range []struct {
		url    string
		limits egress.Limits
		says   string
	}{
		{"http://host.test", egress.Limits{Lookup: 50 * time.Millisecond}, "looking up"},
		{silent, egress.Limits{Connect: time.Nanosecond}, "did not accept a connection"},
		{strings.Replace(silent, "http:", "https:", 1), egress.Limits{Handshake: 50 * time.Millisecond}, "TLS handshake"},
		{silent, egress.Limits{Total: 50 * time.Millisecond}, "complete response in time"},
	} {
		client := newClient(t, egress.Config{Policy: internet, Limits: tc.limits, Resolver: silentResolver{}})
		_, err := client.Do(t.Context(), egress.Request{URL: tc.url})
		if e := wantError(t, err, egress.TimedOut); !strings.Contains(e.Message, tc.says) {
			t.Errorf("the message is %q", e.Message)
		}
	}
}

func TestEveryStatusIsAResponse(t *testing.T) {
	t.Parallel()
	server := serve(t, outside, func(w http.ResponseWriter, r *http.Request) {
		var status int
		fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.Header().Set("Location", "http://127.0.0.1/")
		w.WriteHeader(status)
	})
	client := newClient(t, egress.Config{Policy: internet})
	for _, status := range []int{200, 201, 204, 299, 300, 301, 302, 303, 304, 307, 308, 400, 404, 429, 500, 503, 599} {
		if resp := mustGet(t, client, fmt.Sprintf("%s/%d", server.URL, status)); resp.Status != status {
			t.Errorf("the status is %d, want %d", resp.Status, status)
		}
	}
}
