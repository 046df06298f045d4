package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// unfinishedBodies starts a server and measures what unfinished bodies of one
// tenant cost another.
func unfinishedBodies(ctx context.Context, dir string, length time.Duration) error {
	binary, err := build(ctx, dir, "./cmd/stepmill")
	if err != nil {
		return err
	}
	server, err := start(ctx, binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "--log-level", "error")
	if err != nil {
		return err
	}
	setup := &client{server: server}
	workspaces, err := setup.workspaces(2)
	if err != nil {
		return err
	}
	if err := setup.unfinished(workspaces[0], workspaces[1], length); err != nil {
		return err
	}
	return server.stop()
}

// unfinished measures the latency of another tenant's write beside requests whose
// bodies never end, compared with its latency without them.
func (c *client) unfinished(attacker, other workspace, length time.Duration) error {
	hook, err := c.hook(attacker, `{"id":"hook","type":"webhook","rate":1000000}`, `[]`)
	if err != nil {
		return err
	}
	measure := func() (sample, error) {
		s := load([]string{c.server.address}, 1, length, 201, func(int, int) request {
			return newRequest("POST", "/v1/workflows/"+other.empty+"/runs", other.key, `{"payload":{"name":"Ada","n":21}}`)
		})
		return s, s.err
	}
	alone, err := measure()
	if err != nil {
		return err
	}
	for _, row := range []struct {
		name      string
		count     int
		path, key string
	}{
		{"write of another tenant beside 256 unfinished bodies", 256, "/v1/workflows", attacker.key},
		{"write of another tenant beside 128 unfinished hook calls", 128, hook, ""},
	} {
		stop := c.sendUnfinished(row.count, newRequest("POST", row.path, row.key, "", "Content-Type: application/json", "Transfer-Encoding: chunked"))
		beside, err := measure()
		stop()
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		fmt.Printf("%-58s %10.2f ms, p99 %.2f ms, ×alone %.2f, p99 %.2f\n", row.name, milliseconds(beside.percentile(0.5)), milliseconds(beside.percentile(0.99)),
			ratio(beside, alone, 0.5), ratio(beside, alone, 0.99))
	}
	return nil
}

func ratio(a, b sample, p float64) float64 {
	return milliseconds(a.percentile(p)) / milliseconds(b.percentile(p))
}

// sendUnfinished keeps n requests open that have sent one byte of their body, until
// stop is called. When the server cuts one off, the next takes its place.
func (c *client) sendUnfinished(n int, head request) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var open, begun sync.WaitGroup
	begun.Add(n)
	for range n {
		open.Go(func() {
			first := sync.OnceFunc(begun.Done)
			defer first()
			for ctx.Err() == nil {
				conn, err := dial(c.server.address)
				if err != nil {
					return
				}
				closed := context.AfterFunc(ctx, func() { _ = conn.conn.Close() })
				_, _ = conn.conn.Write(append(slices.Clip(head), "1\r\n{\r\n"...))
				first()
				_, _ = conn.reader.ReadByte() // the response, when the server has waited long enough
				closed()
				_ = conn.conn.Close()
			}
		})
	}
	begun.Wait()
	return func() {
		cancel()
		open.Wait()
	}
}
