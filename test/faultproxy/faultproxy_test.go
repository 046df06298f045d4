package faultproxy_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/faultproxy"
)

// timeout bounds a test that would otherwise hang.
const timeout = 2 * time.Minute

// echo starts a server that echoes what it receives.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, p *faultproxy.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(timeout))
	return conn
}

func write(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Error(err) // not Fatal: other goroutines call it too
	}
}

func expect(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v, want %q", got, err, want)
	}
}

func expectReset(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := conn.Read(make([]byte, 1))
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("read from a cut connection: %v, want a reset", err)
	}
}

// expectRefused checks that a new connection is reset, possibly during the handshake.
func expectRefused(t *testing.T, p *faultproxy.Proxy) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("new connection: %v, want a reset", err)
	}
}

// await waits until the counts satisfy a condition.
func await(t *testing.T, p *faultproxy.Proxy, what string, happened func(faultproxy.Counts) bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !happened(p.Counts()); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen: %+v", what, p.Counts())
		}
	}
}

func TestRelaysUntilBothSidesClose(t *testing.T) {
	t.Parallel()
	p := faultproxy.Start(t, faultproxy.Options{Target: echo(t)})
	conn := dial(t, p)
	for _, text := range []string{"a", "bcd", string(make([]byte, 1<<20))} {
		go write(t, conn, text)
		expect(t, conn, text)
	}
	write(t, conn, "last")
	_ = conn.(*net.TCPConn).CloseWrite()
	expect(t, conn, "last")
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read after the end: %v, want EOF", err)
	}
	if got := p.Counts(); got != (faultproxy.Counts{Accepted: 1}) {
		t.Errorf("counted %+v", got)
	}
}

func TestLatencyIsAddedInEachDirection(t *testing.T) {
	t.Parallel()
	p := faultproxy.Start(t, faultproxy.Options{Target: echo(t)})
	conn := dial(t, p)
	p.Latency(60*time.Millisecond, 40*time.Millisecond)
	started := time.Now()
	write(t, conn, "a")
	expect(t, conn, "a")
	if took := time.Since(started); took < 100*time.Millisecond {
		t.Errorf("round trip took %v, want at least 100ms", took)
	}
	p.Latency(0, 0)
	write(t, conn, "b")
	expect(t, conn, "b")
	// Many chunks can be in flight: the second is accepted while the first is still
	// delayed.
	delayed := p.Counts().Delayed
	p.Latency(time.Hour, 0)
	for i, text := range []string{"c", "d", "e"} {
		write(t, conn, text)
		await(t, p, "accepting a chunk", func(c faultproxy.Counts) bool { return c.Delayed == delayed+i+1 })
	}
}

func TestBlackHoleHoldsData(t *testing.T) {
	t.Parallel()
	p := faultproxy.Start(t, faultproxy.Options{Target: echo(t)})
	conn := dial(t, p)
	write(t, conn, "a")
	expect(t, conn, "a")
	p.BlackHole(true)
	p.BlackHole(true)
	write(t, conn, "b")
	late := dial(t, p) // it looks as if the server accepted it
	write(t, late, "c")
	await(t, p, "holding data", func(c faultproxy.Counts) bool { return c.Held >= 2 })
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read from a black hole: %v, want a timeout", err)
	}
	_ = conn.SetDeadline(time.Now().Add(timeout))
	p.BlackHole(false)
	expect(t, conn, "b")
	expect(t, late, "c")
}

func TestCutResetsOpenConnections(t *testing.T) {
	t.Parallel()
	p := faultproxy.Start(t, faultproxy.Options{Target: echo(t)})
	conns := []net.Conn{dial(t, p), dial(t, p)}
	for _, conn := range conns {
		write(t, conn, "a")
		expect(t, conn, "a")
	}
	if n := p.Cut(); n != 2 || p.Counts().Cut != 2 {
		t.Errorf("cut %d connections, counted %+v, want 2", n, p.Counts())
	}
	for _, conn := range conns {
		expectReset(t, conn)
	}
	conn := dial(t, p)
	write(t, conn, "b")
	expect(t, conn, "b")
}

func TestRefuseResetsNewConnections(t *testing.T) {
	t.Parallel()
	p := faultproxy.Start(t, faultproxy.Options{Target: echo(t)})
	old := dial(t, p)
	write(t, old, "a")
	expect(t, old, "a")
	p.Refuse(true)
	expectRefused(t, p)
	write(t, old, "b")
	expect(t, old, "b")
	p.Refuse(false)
	conn := dial(t, p)
	write(t, conn, "c")
	expect(t, conn, "c")
	if got := p.Counts(); got.Refused != 1 || got.Accepted != 2 {
		t.Errorf("counted %+v", got)
	}
}

func TestUnreachableServerResetsConnections(t *testing.T) {
	t.Parallel()
	p := faultproxy.Start(t, faultproxy.Options{Target: "127.0.0.1:1"}) // nothing listens on this port
	expectRefused(t, p)
	if got := p.Counts(); got.Unreachable != 1 {
		t.Errorf("counted %+v", got)
	}
}
