package transport

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// addressedConn has any remote address.
type addressedConn struct {
	net.Conn
	from string
}

func (c addressedConn) RemoteAddr() net.Addr {
	at, err := net.ResolveTCPAddr("tcp", c.from)
	if err != nil {
		panic(err)
	}
	return at
}

// acceptFrom accepts connections from these addresses and returns how many were
// within the limit of two per client.
func acceptFrom(t *testing.T, from ...string) int {
	t.Helper()
	inner := &fakeListener{conns: make(chan net.Conn, len(from))}
	l := LimitConns(inner, 2, nil, nil)
	for _, address := range from {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = theirs.Close() })
		inner.conns <- addressedConn{ours, address}
	}
	close(inner.conns)
	for {
		if _, err := l.Accept(); err != nil {
			return l.Open()
		}
	}
}

func TestConnectionsPerClient(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		from []string
		want int
	}{
		{"one address", []string{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3"}, 2},
		{"three addresses", []string{"192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1"}, 3},
		{"one address, mapped to IPv6", []string{"192.0.2.1:1", "[::ffff:192.0.2.1]:2", "[::ffff:192.0.2.1]:3"}, 2},
		{"mapped addresses are not one network", []string{"[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:1", "[::ffff:192.0.2.3]:1"}, 3},
		{"one IPv6 network", []string{"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::ffff:1:2:3]:1"}, 2},
		{"three IPv6 networks", []string{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", "[2001:db8:0:2::1]:1"}, 3},
		{"loopback", []string{"[::1]:1", "[::1]:2", "[::1]:3"}, 3},
	} {
		if got := acceptFrom(t, tc.from...); got != tc.want {
			t.Errorf("%s: %d connections are open, want %d", tc.name, got, tc.want)
		}
	}
}

// fullServer serves with a limit of three connections in total and a spare one. A request
// to /hold gets its response when release is called.
func fullServer(t *testing.T) (dial func() net.Conn, release func(), shutdown func() error) {
	t.Helper()
	inner := &fakeListener{conns: make(chan net.Conn, 10)}
	l := LimitConns(inner, 100, nil, nil)
	l.maxConns, l.maxSpare = 3, 1
	held := make(chan struct{})
	server := &http.Server{ConnState: l.TrackState, ConnContext: l.MarkSpare, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isSpare(r.Context()) {
			w.Header().Set("Connection", "close")
		}
		if r.URL.Path == "/hold" {
			<-held
		}
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	dial = func() net.Conn {
		ours, theirs := net.Pipe()
		inner.conns <- remoteConn{theirs}
		synctest.Wait()
		return ours
	}
	return dial, sync.OnceFunc(func() { close(held) }), func() error {
		_ = l.Close()
		close(inner.conns)
		err := server.Close()
		serving.Wait()
		return err
	}
}

func send(t *testing.T, conn net.Conn, path string) {
	t.Helper()
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func receive(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("the response is %v, %v", response, err)
	}
	synctest.Wait()
}

func wantClosed(t *testing.T, what string, conn net.Conn, want bool) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, io.EOF) != want {
		t.Errorf("%s: reading returns %v", what, err)
	}
}

// If the total is reached, a new client replaces the connection that has been idle
// longest, never one with a request in progress.
func TestNewConnectionReplacesTheOldestIdleOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dial, release, shutdown := fullServer(t)
		busy, silent, used := dial(), dial(), dial()
		send(t, busy, "/hold")
		send(t, used, "/")
		receive(t, used)
		next := dial()
		wantClosed(t, "a client that never sent anything", silent, true)
		wantClosed(t, "a client that was idle for a shorter time", used, false)
		send(t, next, "/hold")
		last := dial()
		wantClosed(t, "the only idle client", used, true)
		send(t, last, "/hold")

		first, second := dial(), dial() // none is idle
		wantClosed(t, "a spare client that never sent anything", first, true)
		send(t, second, "/")
		receive(t, second)
		wantClosed(t, "a spare client after the response", second, true)
		spare := dial()
		send(t, spare, "/hold")
		waiting := dial() // not even the spare one is silent
		release()
		receive(t, busy) // is idle now, and thereby makes room
		send(t, waiting, "/")
		receive(t, waiting)
		receive(t, next)
		receive(t, last)
		wantClosed(t, "the first that became idle", busy, true)
		if err := shutdown(); err != nil {
			t.Error(err)
		}
	})
}

// Closing the listener ends an Accept that waits for a slot.
func TestCloseEndsAWaitingAccept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dial, release, shutdown := fullServer(t)
		for range 4 {
			send(t, dial(), "/hold")
		}
		waiting := dial()
		defer release()
		if err := shutdown(); err != nil {
			t.Error(err)
		}
		wantClosed(t, "the waiting client", waiting, true)
	})
}

// A connection can be half closed if the inner one can.
func TestLimitedConnClosesWrite(t *testing.T) {
	t.Parallel()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := LimitConns(inner, 1, nil, nil)
	defer func() { _ = l.Close() }()
	client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(closeWriter).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the client reads %v", err)
	}
	if _, err := client.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("the server reads %d, %v", n, err)
	}
	_ = conn.Close()
	_ = conn.Close() // closing twice releases one slot
	if l.Open() != 0 {
		t.Errorf("%d connections are open", l.Open())
	}
}
