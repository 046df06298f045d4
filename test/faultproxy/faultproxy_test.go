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

// echo starts a server that sends back what it gets.
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
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

func say(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Error(err) // not Fatal: other goroutines say something too
	}
}

func hear(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("heard %q, %v, want %q", got, err, want)
	}
}

func expectReset(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := conn.Read(make([]byte, 1))
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("reading from a connection that was cut: %v", err)
	}
}

// expectRefused wants a new connection to be reset, be it while it is made.
func expectRefused(t *testing.T, p *faultproxy.Proxy) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("a connection that is refused: %v", err)
	}
}

// await waits until something has been counted.
func await(t *testing.T, p *faultproxy.Proxy, what string, happened func(faultproxy.Counts) bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !happened(p.Counts()); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen: %+v", what, p.Counts())
		}
	}
}

func TestRelaysUntilBothSidesAreDone(t *testing.T) {
	t.Parallel()
	p := faultproxy.Start(t, faultproxy.Options{Target: echo(t)})
	conn := dial(t, p)
	for _, text := range []string{"a", "bcd", string(make([]byte, 1<<20))} {
		go say(t, conn, text)
		hear(t, conn, text)
	}
	say(t, conn, "last")
	_ = conn.(*net.TCPConn).CloseWrite()
	hear(t, conn, "last")
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	if got := p.Counts(); got != (faultproxy.Counts{Accepted: 1}) {
		t.Errorf("counted %+v", got)
	}
}

func TestLatencyIsAddedEachWayAndKeepsThePace(t *testing.T) {
	t.Parallel()
	p := faultproxy.Start(t, faultproxy.Options{Target: echo(t)})
	conn := dial(t, p)
	p.Latency(60*time.Millisecond, 40*time.Millisecond)
	begun := time.Now()
	say(t, conn, "a")
	hear(t, conn, "a")
	if took := time.Since(begun); took < 100*time.Millisecond {
		t.Errorf("there and back took %v", took)
	}
	// Many pieces are under way at a time.
	p.Latency(time.Second, 0)
	begun = time.Now()
	text := string(make([]byte, 1<<20))
	go say(t, conn, text)
	hear(t, conn, text)
	if took := time.Since(begun); took < time.Second || took > 10*time.Second {
		t.Errorf("many pieces took %v", took)
	}
	if p.Counts().Delayed < 3 {
		t.Errorf("counted %+v", p.Counts())
	}
	p.Latency(0, 0)
	say(t, conn, "b")
	hear(t, conn, "b")
}

func TestABlackHoleSaysNothingAndLosesNothing(t *testing.T) {
	t.Parallel()
	p := faultproxy.Start(t, faultproxy.Options{Target: echo(t)})
	conn := dial(t, p)
	say(t, conn, "a")
	hear(t, conn, "a")
	p.BlackHole(true)
	p.BlackHole(true)
	say(t, conn, "b")
	late := dial(t, p) // it looks as if there were a server
	say(t, late, "c")
	await(t, p, "holding data back", func(c faultproxy.Counts) bool { return c.Held >= 2 })
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("reading from a black hole: %v", err)
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	p.BlackHole(false)
	hear(t, conn, "b")
	hear(t, late, "c")
}

func TestCutEndsWhatIsOpen(t *testing.T) {
	t.Parallel()
	p := faultproxy.Start(t, faultproxy.Options{Target: echo(t)})
	conns := []net.Conn{dial(t, p), dial(t, p)}
	for _, conn := range conns {
		say(t, conn, "a")
		hear(t, conn, "a")
	}
	if n := p.Cut(); n != 2 || p.Counts().Cut != 2 {
		t.Errorf("cut %d, counted %+v", n, p.Counts())
	}
	for _, conn := range conns {
		expectReset(t, conn)
	}
	conn := dial(t, p)
	say(t, conn, "b")
	hear(t, conn, "b")
}

func TestRefuseKeepsNewConnectionsOut(t *testing.T) {
	t.Parallel()
	p := faultproxy.Start(t, faultproxy.Options{Target: echo(t)})
	old := dial(t, p)
	say(t, old, "a")
	hear(t, old, "a")
	p.Refuse(true)
	expectRefused(t, p)
	say(t, old, "b")
	hear(t, old, "b")
	p.Refuse(false)
	conn := dial(t, p)
	say(t, conn, "c")
	hear(t, conn, "c")
	if got := p.Counts(); got.Refused != 1 || got.Accepted != 2 {
		t.Errorf("counted %+v", got)
	}
}

func TestWithoutAServerConnectionsAreReset(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	p := faultproxy.Start(t, faultproxy.Options{Target: listener.Addr().String()})
	expectRefused(t, p)
	if got := p.Counts(); got.Unreachable != 1 {
		t.Errorf("counted %+v", got)
	}
}
