package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stepmill/stepmill/test/postgres"
)

// clusterLatencies measures the latencies that the documentation guarantees, on
// three nodes with the default lease.
func clusterLatencies(ctx context.Context, dir string) (err error) {
	if _, err := build(ctx, dir, "./cmd/stepmill"); err != nil {
		return err
	}
	db, node, err := nodes(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var members [3]*process
	for i := range members {
		begin := restart
		if i == 0 {
			begin = start
		}
		if members[i], err = node(begin); err != nil {
			return err
		}
	}
	endpoint, err := newHolder(ctx)
	if err != nil {
		return err
	}
	defer endpoint.close()
	time.Sleep(membershipDelay)
	p := &latencyBench{db: db, holder: endpoint, first: &client{server: members[0]}, second: &client{server: members[1]}, key: members[0].key}
	if p.holding, err = p.first.workflow(p.key, fmt.Sprintf(`{"state":"active","steps":[{"id":"call","uses":"http.request","with":{"url":"http://%s/"}}]}`, endpoint.address)); err != nil {
		return err
	}
	fmt.Printf("%-64s %10s %10s\n", "three nodes", "measured", "guaranteed")
	for _, row := range []struct {
		name      string
		guarantee time.Duration
		measure   func() (time.Duration, error)
	}{
		{"cancel until a call on another node is aborted", time.Second, p.cancel},
		{"revocation of a key until another node rejects it", 5 * time.Second, p.revoke},
		{"restart of the database until the first run ends", 5 * time.Second, p.outage},
		{"kill of a node until another node repeats its call", 12 * time.Second, func() (time.Duration, error) { return p.kill(members[0]) }},
	} {
		took, err := row.measure()
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		fmt.Printf("%-64s %10s %10s\n", row.name, took.Round(time.Millisecond), row.guarantee)
	}
	if _, err := node(restart); err != nil {
		return err
	}
	return idleCost(ctx, db.URL("postgres"))
}

// latencyBench holds the cluster that latencies are measured on.
type latencyBench struct {
	db            *postgres.Server
	holder        *holder
	first, second *client
	key           string
	holding       string // a workflow whose only call never gets a response
}

// hold starts a run on the first node and waits until its call is in flight.
func (p *latencyBench) hold() (run string, err error) {
	var made struct {
		ID string `json:"id"`
	}
	if err := p.first.call("POST", "/v1/workflows/"+p.holding+"/runs", p.key, "", &made); err != nil {
		return "", err
	}
	_, err = p.holder.await(made.ID, 1, 0)
	return made.ID, err
}

func (p *latencyBench) cancel() (time.Duration, error) {
	run, err := p.hold()
	if err != nil {
		return 0, err
	}
	var response any
	asked := time.Now()
	if err := p.second.call("POST", "/v1/runs/"+run+"/cancel", p.key, "", &response); err != nil {
		return 0, err
	}
	at, err := p.holder.await(run, 1, 1)
	return at.Sub(asked), err
}

func (p *latencyBench) revoke() (time.Duration, error) {
	var made struct {
		ID  string `json:"id"`
		Key string `json:"key"`
	}
	var response any
	if err := p.first.call("POST", "/v1/api-keys", p.key, `{"name":"short-lived","scopes":["read"]}`, &made); err != nil {
		return 0, err
	}
	if err := p.second.call("GET", "/v1/workflows", made.Key, "", &response); err != nil {
		return 0, err
	}
	asked := time.Now()
	conn, err := dial(p.first.server.address)
	if err != nil {
		return 0, err
	}
	if status, body, err := conn.do(newRequest("DELETE", "/v1/api-keys/"+made.ID, p.key, "")); err != nil || status >= 300 {
		return 0, fmt.Errorf("revoke: %d %s %w", status, body, err)
	}
	return since(asked, func() bool { return p.second.call("GET", "/v1/workflows", made.Key, "", &response) != nil })
}

func (p *latencyBench) outage() (time.Duration, error) {
	empty, err := p.first.workflow(p.key, `{"state":"active"}`)
	if err != nil {
		return 0, err
	}
	p.db.StopImmediate()
	p.db.Start()
	back := time.Now()
	return since(back, func() bool {
		var run struct {
			Status string `json:"status"`
		}
		conn, err := dial(p.first.server.address)
		if err != nil {
			return false
		}
		once := &client{server: p.first.server, conn: conn}
		defer func() { _ = conn.conn.Close() }()
		err = once.callWith("POST", "/v1/workflows/"+empty+"/runs", p.key, "", &run, "Prefer: wait=30")
		return err == nil && run.Status == "succeeded"
	})
}

// kill kills the first node, so it must run last.
func (p *latencyBench) kill(first *process) (time.Duration, error) {
	run, err := p.hold()
	if err != nil {
		return 0, err
	}
	died := time.Now()
	if err := first.cmd.Process.Kill(); err != nil {
		return 0, err
	}
	at, err := p.holder.await(run, 2, 0)
	return at.Sub(died), err
}

// since waits until a condition is true and returns the time since begun.
func since(begun time.Time, holds func() bool) (time.Duration, error) {
	for !holds() {
		if time.Since(begun) > time.Minute {
			return 0, errors.New("timed out after a minute")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(begun), nil
}

// holder is a server that never responds. It records when calls of a run arrive
// and when their clients disconnect.
type holder struct {
	address string
	server  *http.Server
	mu      sync.Mutex
	came    map[string][]time.Time
	left    map[string][]time.Time
}

func newHolder(ctx context.Context) (*holder, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &holder{address: listener.Addr().String(), came: map[string][]time.Time{}, left: map[string][]time.Time{}}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = h.server.Serve(listener) }() // until it is closed
	return h, nil
}

func (h *holder) close() { _ = h.server.Close() }

// ServeHTTP implements http.Handler.
func (h *holder) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	run, _, _ := strings.Cut(request.Header.Get("Idempotency-Key"), "/")
	_, _ = io.Copy(io.Discard, request.Body) // disconnects are detected only after the body was read
	h.record(h.came, run)
	<-request.Context().Done()
	h.record(h.left, run)
}

// calls returns the number of runs that have called.
func (h *holder) calls() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.came)
}

func (h *holder) record(in map[string][]time.Time, run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	in[run] = append(in[run], time.Now())
}

// await waits until the given numbers of calls of a run have arrived and been
// abandoned. It returns the time of the last of these.
func (h *holder) await(run string, came, left int) (last time.Time, err error) {
	_, err = since(time.Now(), func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.came[run]) < came || len(h.left[run]) < left {
			return false
		}
		last = h.came[run][came-1]
		if left > 0 {
			last = h.left[run][left-1]
		}
		return true
	})
	return last, err
}
