package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// comparison compares setups that run three steps to the end. It measures them in
// rounds and reverses the order every other round, so that gradual changes, such
// as growing tables, affect all of them equally.
type comparison struct {
	length           time.Duration
	alone            row // on the embedded database
	row              row
	embedded, first  *process
	second           *process // nil if there is only one node
	more             func() (*process, error)
	own, one, two    []float64 // runs per second
	ofEmbedded, gain []float64
}

// compareNodes compares one node with two nodes and with the embedded database.
func compareNodes(ctx context.Context, dir string, count int, length time.Duration) (err error) {
	binary, err := build(ctx, dir, "./cmd/stepmill")
	if err != nil {
		return err
	}
	db, node, err := nodes(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c := &comparison{length: length, more: func() (*process, error) { return node(restart) }}
	if c.embedded, err = start(ctx, binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "--log-level", "warn"); err != nil {
		return err
	}
	if c.first, err = node(start); err != nil {
		return err
	}
	if c.alone, err = threeStepRow(c.embedded); err != nil {
		return err
	}
	if c.row, err = threeStepRow(c.first); err != nil {
		return err
	}
	if err := c.measure(count); err != nil {
		return err
	}
	if c.second != nil {
		err = c.second.stop()
	}
	return firstError(err, c.first.stop(), c.embedded.stop())
}

// threeStepRow returns the row in which many clients run three steps.
func threeStepRow(server *process) (row, error) {
	workspaces, err := (&client{server: server}).workspaces(tenants)
	if err != nil {
		return row{}, err
	}
	all := rows(workspaces)
	return all[slices.IndexFunc(all, func(r row) bool { return r.name == threeStepsManyClients })], nil
}

func (c *comparison) measure(count int) error {
	fmt.Printf("%-44s %9s %9s %9s %9s %9s\n", threeStepsManyClients, "embedded", "one node", "two nodes", "one/emb.", "two/one")
	for round := range count {
		order := []func() error{c.measureEmbedded, c.measureOne, c.measureTwo}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, measure := range order {
			if err := measure(); err != nil {
				return err
			}
		}
		c.ofEmbedded, c.gain = append(c.ofEmbedded, c.one[round]/c.own[round]), append(c.gain, c.two[round]/c.one[round])
		fmt.Printf("%-44s %9.0f %9.0f %9.0f %9.2f %9.2f\n", fmt.Sprint("round ", round+1), c.own[round], c.one[round], c.two[round], c.ofEmbedded[round], c.gain[round])
	}
	fmt.Printf("%-44s %9.0f %9.0f %9.0f %9.2f %9.2f\n", "mean", mean(c.own), mean(c.one), mean(c.two), mean(c.one)/mean(c.own), mean(c.two)/mean(c.one))
	slices.Sort(c.ofEmbedded)
	slices.Sort(c.gain)
	fmt.Printf("%-44s %9s %9s %9s %9.2f %9.2f\n", "worst round", "", "", "", c.ofEmbedded[0], c.gain[0])
	fmt.Printf("%-44s %9s %9s %9s %9.2f %9.2f\n", "median round", "", "", "", c.ofEmbedded[count/2], c.gain[count/2])
	return nil
}

func (c *comparison) measureEmbedded() error {
	return c.load(c.alone, &c.own, c.embedded)
}

func (c *comparison) measureOne() error {
	if c.second != nil {
		if err := c.second.stop(); err != nil {
			return err
		}
		c.second = nil
		time.Sleep(membershipDelay)
	}
	return c.load(c.row, &c.one, c.first)
}

func (c *comparison) measureTwo() (err error) {
	if c.second == nil {
		if c.second, err = c.more(); err != nil {
			return err
		}
		time.Sleep(membershipDelay)
	}
	return c.load(c.row, &c.two, c.first, c.second)
}

func (c *comparison) load(row row, into *[]float64, servers ...*process) error {
	targets := addresses(servers)
	// Warm up servers that were just started.
	if warm := load(targets, row.clients, c.length/2, row.want, row.next); warm.err != nil {
		return warm.err
	}
	s := load(targets, row.clients, c.length, row.want, row.next)
	*into = append(*into, s.rate())
	return s.err
}

func mean(of []float64) float64 {
	sum := 0.0
	for _, f := range of {
		sum += f
	}
	return sum / float64(len(of))
}
