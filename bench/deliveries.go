package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	endpoints = 16
	// idleRuns runs are started one after the other, burst runs all at once.
	idleRuns = 200
	burst    = 300
)

// receiver is a webhook endpoint that responds immediately and records arrivals.
type receiver struct {
	address string
	server  *http.Server
	mu      sync.Mutex
	arrived []arrival
}

type arrival struct {
	at  time.Time
	end time.Time // when the run ended; zero if the request is not about a run
}

func newReceiver(ctx context.Context) (*receiver, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{address: listener.Addr().String()}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(listener) }() // until it is closed
	return r, nil
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	at := time.Now()
	var body struct {
		Data struct {
			FinishedAt time.Time `json:"finished_at"`
		} `json:"data"`
	}
	text, err := io.ReadAll(request.Body)
	if err != nil || json.Unmarshal(text, &body) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrived = append(r.arrived, arrival{at, body.Data.FinishedAt})
}

// await waits for count deliveries and removes them.
func (r *receiver) await(count int) ([]arrival, error) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		if len(r.arrived) >= count {
			taken := r.arrived
			r.arrived = nil
			r.mu.Unlock()
			return taken, nil
		}
		got := len(r.arrived)
		r.mu.Unlock()
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%d of %d deliveries arrived within a minute", got, count)
		}
	}
}

// deliveries measures the latency from the end of a run to its webhook, and the
// throughput of deliveries to endpoints that respond immediately.
func (c *client) deliveries(ctx context.Context, w workspace) error {
	r, err := newReceiver(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.server.Close() }()
	run := newRequest("POST", "/v1/workflows/"+w.empty+"/runs", w.key, `{}`)
	if err := c.subscribe(w, "http://"+r.address+"/0", "run.succeeded"); err != nil {
		return err
	}
	var waits []time.Duration
	for range idleRuns {
		if err := c.start(run, 1); err != nil {
			return err
		}
		came, err := r.await(1)
		if err != nil {
			return err
		}
		waits = append(waits, came[0].at.Sub(came[0].end))
	}
	slices.Sort(waits)
	fmt.Printf("%-58s %10.1f ms, p99 %.1f ms\n", "end of a run to its webhook, idle, median",
		milliseconds(waits[len(waits)/2]), milliseconds(waits[len(waits)*99/100]))

	for n := range endpoints - 1 {
		if err := c.subscribe(w, fmt.Sprintf("http://%s/%d", r.address, n+1), "run.succeeded"); err != nil {
			return err
		}
	}
	before := c.server.cpu()
	if err := c.start(run, burst); err != nil {
		return err
	}
	came, err := r.await(burst * endpoints)
	if err != nil {
		return err
	}
	used := c.server.cpu() - before
	took := came[len(came)-1].at.Sub(came[0].at)
	fmt.Printf("%-58s %10.0f per second, %.3f CPU s/1k\n", fmt.Sprintf("deliveries to %d endpoints that respond immediately", endpoints),
		float64(len(came))/took.Seconds(), used.Seconds()/float64(len(came))*1000)
	return nil
}

func (c *client) subscribe(w workspace, url, kind string) error {
	var made struct{}
	return c.call("POST", "/v1/webhooks", w.key, fmt.Sprintf(`{"url":%q,"events":[%q]}`, url, kind), &made)
}

func (c *client) start(run request, times int) error {
	for range times {
		if status, body, err := c.conn.do(run); err != nil || status != http.StatusCreated {
			return fmt.Errorf("start a run: %d %s %w", status, body, err)
		}
	}
	return nil
}
