// Command bench measures the service the way a client meets it: the real
// binary, durable, over HTTP on loopback, beside references measured in the
// same run on the same disk. Figures move with the machine; the ratios count.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	length := flag.Duration("length", 5*time.Second, "how long each load runs")
	var only only
	flag.IntVar(&only.waiting, "waiting", 0, "measure only the memory that so many waiting runs take")
	flag.IntVar(&only.move, "move", 0, "measure only an export and an import of so many finished runs")
	flag.IntVar(&only.schedules, "schedules", 0, "measure only the processor time that so many idle schedules take")
	flag.IntVar(&only.turns, "turns", 0, "compare only one node and two on PostgreSQL and the embedded database, in so many turns")
	flag.Parse()
	if err := bench(context.Background(), *length, only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// only says what to measure in the place of the whole table.
type only struct{ waiting, move, schedules, turns int }

// tenants is how many workspaces share the load; one more has webhooks.
const tenants = 8

// report collects the rows of the table.
type report struct {
	commits  float64
	ceiling  float64
	embedded map[string]float64 // rows per second on the embedded database
}

func bench(ctx context.Context, length time.Duration, only only) (err error) {
	dir, err := os.MkdirTemp(".", ".bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	defer killAll()
	switch {
	case only.waiting > 0:
		return waiting(ctx, dir, only.waiting)
	case only.move > 0:
		return move(ctx, dir, only.move)
	case only.schedules > 0:
		return schedules(ctx, dir, only.schedules)
	case only.turns > 0:
		return turns(ctx, dir, only.turns, length)
	}
	r := &report{embedded: map[string]float64{}}
	if err := r.references(ctx, dir, length); err != nil {
		return err
	}
	if err := r.product(ctx, dir, length); err != nil {
		return err
	}
	return r.shared(ctx, dir, length)
}

func (r *report) references(ctx context.Context, dir string, length time.Duration) error {
	fmt.Printf("%-58s %10s\n", "reference", "per second")
	rate, err := flushes(dir, length/2)
	if err != nil {
		return err
	}
	fmt.Printf("%-58s %10.0f\n", "flushes of 4 KiB to this disk", rate)
	if r.commits, err = rawCommits(dir, length/2); err != nil {
		return err
	}
	fmt.Printf("%-58s %10.0f\n", "raw SQLite commits, one row each, flushed", r.commits)
	binary, err := build(ctx, dir, "./bench/ceiling")
	if err != nil {
		return err
	}
	server, err := start(ctx, binary, dir)
	if err != nil {
		return err
	}
	body := `{"payload":{"name":"Ada","n":21}}`
	echo := load([]string{server.address}, 32, length, 200, func(int, int) request { return newRequest("POST", "/echo", "", body) })
	fmt.Printf("%-58s %10.0f\n", "bare HTTP + JSON echo, 32 clients", echo.rate())
	ceiling := load([]string{server.address}, 32, length, 200, func(int, int) request { return newRequest("POST", "/runs", "", body) })
	r.ceiling = ceiling.rate()
	fmt.Printf("%-58s %10.0f\n", "ceiling: bare server, runs in group commits, 32 clients", r.ceiling)
	return firstError(echo.err, ceiling.err, server.stop())
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *report) product(ctx context.Context, dir string, length time.Duration) error {
	binary, err := build(ctx, dir, "./cmd/stepmill")
	if err != nil {
		return err
	}
	server, err := start(ctx, binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "--log-level", "warn", "--egress-allow", "127.0.0.0/8")
	if err != nil {
		return err
	}
	setup := &client{server: server}
	workspaces, err := setup.workspaces(tenants + 1)
	if err != nil {
		return err
	}
	fmt.Printf("\n%-44s %9s %9s %9s %9s %9s %9s\n", "stepmill, durable", "per s", "p50 ms", "p99 ms", "CPU s/1k", "×commits", "×ceiling")
	fmt.Printf("ready after %s on a new directory, %.0f MiB resident when idle\n", server.ready.Round(time.Millisecond), server.memory())
	var called []hooks
	for _, w := range workspaces[:tenants] {
		made, err := setup.hooks(w)
		if err != nil {
			return err
		}
		called = append(called, made)
	}
	for _, row := range append(rows(workspaces[:tenants]), hookRows(called)...) {
		if err := r.measure([]*process{server}, row, length); err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
	}
	if err := setup.firstSteps(ctx, workspaces[tenants]); err != nil {
		return fmt.Errorf("first steps: %w", err)
	}
	if err := setup.deliveries(ctx, workspaces[tenants]); err != nil {
		return fmt.Errorf("deliveries: %w", err)
	}
	fmt.Printf("%.0f MiB resident at the end\n", server.memory())
	return server.stop()
}

func (r *report) measure(servers []*process, row row, length time.Duration) error {
	var used time.Duration
	for _, server := range servers {
		used -= server.cpu()
	}
	s := load(addressesOf(servers), row.clients, length, row.want, row.next)
	for _, server := range servers {
		used += server.cpu()
	}
	if s.err != nil {
		return s.err
	}
	fmt.Printf("%-44s %9.0f %9.2f %9.2f %9.3f %9.2f %9.2f", row.name, s.rate(),
		milliseconds(s.percentile(0.5)), milliseconds(s.percentile(0.99)), used.Seconds()/float64(s.count)*1000, s.rate()/r.commits, s.rate()/r.ceiling)
	if embedded, ok := r.embedded[row.name]; ok {
		fmt.Printf(" %9.2f", s.rate()/embedded)
	} else {
		r.embedded[row.name] = s.rate()
	}
	fmt.Println()
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// client sets things up.
type client struct {
	server *process
	conn   *connection
}

// call sends a request and decodes its answer.
func (c *client) call(method, path, key, body string, into any) error {
	if c.conn == nil {
		conn, err := dial(c.server.address)
		if err != nil {
			return err
		}
		c.conn = conn
	}
	status, answer, err := c.conn.do(newRequest(method, path, key, body))
	if err != nil {
		return err
	}
	if status >= 300 {
		return fmt.Errorf("%s %s: %d: %s", method, path, status, answer)
	}
	return json.Unmarshal(answer, into)
}
