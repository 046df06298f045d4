package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"time"
)

const (
	aborts      = 100
	revokedKeys = 3
)

// hanging is a server that never responds. It signals when a request arrives and
// when its client disconnects.
type hanging struct {
	address string
	server  *http.Server
	came    chan struct{}
	left    chan time.Time
}

func newHanging(ctx context.Context) (*hanging, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &hanging{address: listener.Addr().String(), came: make(chan struct{}), left: make(chan time.Time)}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = h.server.Serve(listener) }() // until it is closed
	return h, nil
}

// ServeHTTP implements http.Handler.
func (h *hanging) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // disconnects are detected only after the body was read
	h.came <- struct{}{}
	<-r.Context().Done()
	h.left <- time.Now()
}

// cancels measures how long it takes a cancel to abort the step in flight.
func (c *client) cancels(ctx context.Context, w workspace) error {
	h, err := newHanging(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = h.server.Close() }()
	id, err := c.workflow(w.key, `{"state":"active","steps":[{"id":"a","uses":"http.request","with":{"url":"http://`+h.address+`/"}}]}`)
	if err != nil {
		return err
	}
	var waits []time.Duration
	for range aborts {
		var run struct{ ID string }
		if err := c.call("POST", "/v1/workflows/"+id+"/runs", w.key, `{}`, &run); err != nil {
			return err
		}
		<-h.came
		begun := time.Now()
		if err := c.call("POST", "/v1/runs/"+run.ID+"/cancel", w.key, "", &run); err != nil {
			return err
		}
		waits = append(waits, (<-h.left).Sub(begun))
	}
	slices.Sort(waits)
	fmt.Printf("%-58s %10.2f ms, p99 %.2f ms\n", "cancel to the abort of the step in flight, median",
		milliseconds(waits[len(waits)/2]), milliseconds(waits[len(waits)*99/100]))
	return nil
}

// revocations measures how long it takes a running server to reject a key that
// was revoked on the command line.
func (c *client) revocations(ctx context.Context, binary, dir string) error {
	var slowest time.Duration
	for range revokedKeys {
		var made struct{ ID, Key string }
		if err := c.call("POST", "/v1/api-keys", c.server.key, `{"name":"short","scopes":["read"]}`, &made); err != nil {
			return err
		}
		use := newRequest("GET", "/v1/workflows", made.Key, "")
		if status, body, err := c.conn.do(use); err != nil || status != http.StatusOK {
			return fmt.Errorf("use a key: %d %s %w", status, body, err)
		}
		if out, err := exec.CommandContext(ctx, binary, "keys", "revoke", made.ID, "--data-dir", dir).CombinedOutput(); err != nil {
			return fmt.Errorf("keys revoke: %w: %s", err, out)
		}
		begun := time.Now()
		for status := 0; status != http.StatusUnauthorized; time.Sleep(10 * time.Millisecond) {
			var err error
			if status, _, err = c.conn.do(use); err != nil {
				return err
			}
		}
		slowest = max(slowest, time.Since(begun))
	}
	fmt.Printf("%-58s %10.0f ms\n", "revocation of a key to its first rejection, slowest", milliseconds(slowest))
	return nil
}

// restartAfterKill kills the server and measures how long the next one takes to
// become ready on the same data.
func restartAfterKill(ctx context.Context, server *process, binary string, args []string) (*process, error) {
	if err := server.cmd.Process.Kill(); err != nil {
		return nil, err
	}
	_ = server.cmd.Wait() // it was killed
	next, err := restart(ctx, binary, args...)
	if err != nil {
		return nil, err
	}
	probe := &client{server: next}
	var nothing json.RawMessage
	if err := probe.call("GET", "/readyz", "", "", &nothing); err != nil {
		return nil, err
	}
	fmt.Printf("%-58s %10.0f ms\n", "restart after a kill until ready", milliseconds(next.ready))
	return next, nil
}
