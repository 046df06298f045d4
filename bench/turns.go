package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// contest compares ways to run three steps to the end. Whatever else changes
// meanwhile, such as the size of tables, meets all of them alike: they are measured
// in turns, and in the opposite order every other turn.
type contest struct {
	length           time.Duration
	alone            row // on the embedded database
	row              row
	embedded, first  *process
	second           *process // nil: there is one node
	more             func() (*process, error)
	own, one, two    []float64 // runs per second
	ofEmbedded, gain []float64
}

// turns compares one node with two of them, and with the embedded database.
func turns(ctx context.Context, dir string, count int, length time.Duration) (err error) {
	binary, err := build(ctx, dir, "./cmd/stepmill")
	if err != nil {
		return err
	}
	db, node, err := nodes(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c := &contest{length: length, more: func() (*process, error) { return node(restart) }}
	if c.embedded, err = start(ctx, binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "--log-level", "warn"); err != nil {
		return err
	}
	if c.first, err = node(start); err != nil {
		return err
	}
	if c.alone, err = rowOfThree(c.embedded); err != nil {
		return err
	}
	if c.row, err = rowOfThree(c.first); err != nil {
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

// rowOfThree is the row of runs of three steps, with many clients.
func rowOfThree(server *process) (row, error) {
	workspaces, err := (&client{server: server}).workspaces(tenants)
	if err != nil {
		return row{}, err
	}
	all := rows(workspaces)
	return all[slices.IndexFunc(all, func(r row) bool { return r.name == threeManyClients })], nil
}

func (c *contest) measure(count int) error {
	fmt.Printf("%-44s %9s %9s %9s %9s %9s\n", threeManyClients, "embedded", "one node", "two nodes", "one/emb.", "two/one")
	for turn := range count {
		order := []func() error{c.measureEmbedded, c.measureOne, c.measureTwo}
		if turn%2 == 1 {
			slices.Reverse(order)
		}
		for _, measure := range order {
			if err := measure(); err != nil {
				return err
			}
		}
		c.ofEmbedded, c.gain = append(c.ofEmbedded, c.one[turn]/c.own[turn]), append(c.gain, c.two[turn]/c.one[turn])
		fmt.Printf("%-44s %9.0f %9.0f %9.0f %9.2f %9.2f\n", fmt.Sprint("turn ", turn+1), c.own[turn], c.one[turn], c.two[turn], c.ofEmbedded[turn], c.gain[turn])
	}
	fmt.Printf("%-44s %9.0f %9.0f %9.0f %9.2f %9.2f\n", "all together", mean(c.own), mean(c.one), mean(c.two), mean(c.one)/mean(c.own), mean(c.two)/mean(c.one))
	slices.Sort(c.ofEmbedded)
	slices.Sort(c.gain)
	fmt.Printf("%-44s %9s %9s %9s %9.2f %9.2f\n", "the worst turn", "", "", "", c.ofEmbedded[0], c.gain[0])
	fmt.Printf("%-44s %9s %9s %9s %9.2f %9.2f\n", "the middle turn", "", "", "", c.ofEmbedded[count/2], c.gain[count/2])
	return nil
}

func (c *contest) measureEmbedded() error {
	return c.load(c.alone, &c.own, c.embedded)
}

func (c *contest) measureOne() error {
	if c.second != nil {
		if err := c.second.stop(); err != nil {
			return err
		}
		c.second = nil
		time.Sleep(untilKnown)
	}
	return c.load(c.row, &c.one, c.first)
}

func (c *contest) measureTwo() (err error) {
	if c.second == nil {
		if c.second, err = c.more(); err != nil {
			return err
		}
		time.Sleep(untilKnown)
	}
	return c.load(c.row, &c.two, c.first, c.second)
}

func (c *contest) load(row row, into *[]float64, servers ...*process) error {
	addresses := addressesOf(servers)
	// One that was just started has to become as quick as it is.
	if warm := load(addresses, row.clients, c.length/2, row.want, row.next); warm.err != nil {
		return warm.err
	}
	s := load(addresses, row.clients, c.length, row.want, row.next)
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
