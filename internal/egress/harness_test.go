package egress_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
)

// All tests use the loopback interface. They treat 127.1.0.0/16 as the public
// internet; the other loopback addresses are reserved as usual.
const outside = "127.1.0.1"

// refusing is a port on which nothing listens: no system gives it to a listener that
// asks for a free port.
const refusing = ":1"

var (
	internet = egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.1.0.0/16")}}
	loopback = egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
)

// names resolves the hosts of a test.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	var addrs []netip.Addr
	for _, text := range n[strings.ToLower(strings.TrimSuffix(host, "."))] {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	if addrs == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return addrs, nil
}

func newClient(t *testing.T, config egress.Config) *egress.Client {
	t.Helper()
	if os.Getenv(throughProxy) != "" && config.Proxy == nil {
		config.Proxy = startProxy(t, nil).url
	}
	client := egress.New(config)
	t.Cleanup(client.Close)
	return client
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("no listener on %s here: %v", address, err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// serve starts a server on a free port.
func serve(t *testing.T, ip string, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	return serveOn(t, listen(t, ip+":0"), handler)
}

func serveOn(t *testing.T, listener net.Listener, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// decoy counts connections that must not happen. It listens on every address of
// the machine.
type decoy struct {
	port uint16
	hits atomic.Int64
}

func newDecoy(t *testing.T) *decoy { return decoyOn(t, listen(t, ":0")) }

func decoyOn(t *testing.T, listener net.Listener) *decoy {
	t.Helper()
	d := &decoy{port: portOf(listener.Addr())}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			d.hits.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		// The last connection in the queue is this one: no other is pending after it.
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.Read(make([]byte, 1))
		conn.Close()
		if hits := d.hits.Load() - 1; hits != 0 {
			t.Errorf("the decoy was reached %d times", hits)
		}
	})
	return d
}

// rawServer starts a server that responds to each request with write.
func rawServer(t *testing.T, write func(conn net.Conn)) string {
	t.Helper()
	listener := listen(t, outside+":0")
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(time.Minute))
				if _, err := conn.Read(make([]byte, 4096)); err == nil {
					write(conn)
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

func portOf(addr net.Addr) uint16 { return netip.MustParseAddrPort(addr.String()).Port() }

// wantError checks the code of an error and that its text reveals no secret.
func wantError(t *testing.T, err error, code egress.Code) *egress.Error {
	t.Helper()
	var e *egress.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("the error is %v, want %s", err, code)
	}
	retryable := code == egress.ConnectionFailed || code == egress.TimedOut
	if e.Retryable != retryable {
		t.Errorf("%v: retryable %t", err, e.Retryable)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("%v reveals a secret", err)
	}
	return e
}

// secret is put into requests, and must not appear in error messages.
const secret = "s3cr3t"

func get(t *testing.T, client *egress.Client, url string) (*egress.Response, error) {
	t.Helper()
	return client.Do(t.Context(), egress.Request{Workspace: "w", URL: url, Timeout: 3 * time.Minute})
}

func mustGet(t *testing.T, client *egress.Client, url string) *egress.Response {
	t.Helper()
	resp, err := get(t, client, url)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }
