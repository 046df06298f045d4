// Command bench measures the service as a client sees it: the real binary with
// durable commits, over HTTP on loopback. It also measures references on the same
// disk in the same run. Absolute numbers depend on the machine; compare the
// ratios.
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
	var selected selection
	flag.IntVar(&selected.waiting, "waiting", 0, "measure only the memory usage of this many waiting runs")
	flag.IntVar(&selected.move, "move", 0, "measure only an export and an import of this many finished runs")
	flag.IntVar(&selected.files, "files", 0, "measure only the memory usage while a file of this many MiB passes through two steps")
	flag.IntVar(&selected.schedules, "schedules", 0, "measure only the CPU time of this many idle schedules")
	flag.IntVar(&selected.turns, "turns", 0, "compare only the embedded database with one and two nodes on PostgreSQL, in this many rounds")
	flag.IntVar(&selected.catalog, "catalog", 0, "compare only the start, the memory and the builder with the shipped integrations and with this many more operations")
	flag.BoolVar(&selected.promises, "promises", false, "measure only the cluster latencies that the documentation guarantees")
	flag.BoolVar(&selected.neighbors, "neighbors", false, "measure only how a workspace that tries to occupy all capacity affects another")
	flag.BoolVar(&selected.unfinished, "unfinished", false, "measure only the latency of a tenant beside unfinished bodies of another")
	flag.Parse()
	if err := bench(context.Background(), *length, selected); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// selection selects a single measurement instead of the whole table.
type selection struct {
	waiting, move, files, schedules, turns, catalog int
	promises, neighbors, unfinished                 bool
}

// tenants is the number of workspaces that share the load. One more has webhooks.
const tenants = 8

// report collects the rows of the table.
type report struct {
	commits  float64
	ceiling  float64
	embedded map[string]float64 // rows per second on the embedded database
}

func bench(ctx context.Context, length time.Duration, selected selection) (err error) {
	dir, err := os.MkdirTemp(".", ".bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	defer killAll()
	switch {
	case selected.waiting > 0:
		return waiting(ctx, dir, selected.waiting)
	case selected.move > 0:
		return move(ctx, dir, selected.move)
	case selected.files > 0:
		return files(ctx, dir, selected.files)
	case selected.schedules > 0:
		return schedules(ctx, dir, selected.schedules)
	case selected.catalog > 0:
		return catalog(ctx, dir, selected.catalog)
	case selected.turns > 0:
		return compareNodes(ctx, dir, selected.turns, length)
	case selected.promises:
		return clusterLatencies(ctx, dir)
	case selected.neighbors:
		return neighbors(ctx, dir, length)
	case selected.unfinished:
		return unfinishedBodies(ctx, dir, length)
	}
	r := &report{embedded: map[string]float64{}}
	if err := r.references(ctx, dir, length); err != nil {
		return err
	}
	if err := r.product(ctx, dir, length); err != nil {
		return err
	}
	if err := neighbors(ctx, dir, length); err != nil {
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
	data := filepath.Join(dir, "data")
	args := []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", data, "--log-level", "warn", "--egress-allow", "127.0.0.0/8"}
	server, err := start(ctx, binary, args...)
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
	if err := setup.cancels(ctx, workspaces[tenants]); err != nil {
		return fmt.Errorf("cancels: %w", err)
	}
	if err := setup.revocations(ctx, binary, data); err != nil {
		return fmt.Errorf("revoked keys: %w", err)
	}
	if err := setup.unfinished(workspaces[0], workspaces[1], length); err != nil {
		return fmt.Errorf("unfinished bodies: %w", err)
	}
	fmt.Printf("%.0f MiB resident at the end\n", server.memory())
	if server, err = restartAfterKill(ctx, server, binary, args); err != nil {
		return fmt.Errorf("restart after a kill: %w", err)
	}
	return server.stop()
}

func (r *report) measure(servers []*process, row row, length time.Duration) error {
	var used time.Duration
	for _, server := range servers {
		used -= server.cpu()
	}
	s := load(addresses(servers), row.clients, length, row.want, row.next)
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

// client sends single requests, mostly for setup.
type client struct {
	server *process
	conn   *connection
}

// call sends a request and decodes the response.
func (c *client) call(method, path, key, body string, into any) error {
	return c.callWith(method, path, key, body, into)
}

// callWith is like call, with additional headers.
func (c *client) callWith(method, path, key, body string, into any, headers ...string) error {
	if c.conn == nil {
		conn, err := dial(c.server.address)
		if err != nil {
			return err
		}
		c.conn = conn
	}
	status, response, err := c.conn.do(newRequest(method, path, key, body, headers...))
	if err != nil {
		return err
	}
	if status >= 300 {
		return fmt.Errorf("%s %s: %d: %s", method, path, status, response)
	}
	return json.Unmarshal(response, into)
}
