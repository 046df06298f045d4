// Package faultproxy puts a network that fails in a chosen way between a
// client and a server: a TCP proxy on loopback whose faults change while it
// runs, and which counts what it did. It knows as much of PostgreSQL's protocol
// as it takes to lose the answer to a COMMIT.
package faultproxy

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Options say what a proxy stands in front of.
type Options struct {
	// Target is the address of the server.
	Target string
	// Postgres says that it speaks the protocol of PostgreSQL. Connections
	// that encrypt are relayed, but nobody looks into them.
	Postgres bool
	// Seed is where random choices come from.
	Seed uint64
}

// Commits says which answers to commits are lost.
type Commits struct {
	// Probability is that of a commit to lose its answer, from 0 to 1.
	Probability float64
	// Early is the part of them where the client is cut off as soon as the
	// commit is on its way: it may take effect after the client has looked for
	// it, or not at all if the client asks in time to cancel it. For the others
	// the cut comes when the server has answered.
	Early float64
	// Implicit also takes statements that write outside of a transaction,
	// which commit by themselves.
	Implicit bool
}

// Counts are what has happened so far.
type Counts struct {
	Accepted    int // connections that were taken
	Refused     int // connections that Refuse kept out
	Unreachable int // connections for which there was no server
	Cut         int // connections that Cut ended
	Delayed     int // pieces of data that latency delayed
	Held        int // pieces of data and ends of streams that met the black hole
	Commits     int // commits on their way to the server
	Lost        int // commits whose answer was lost,
	LostEarly   int // and those among them that the server had not answered yet
}

// Proxy is a running proxy. Its methods may be called at any time from any
// goroutine.
type Proxy struct {
	options  Options
	listener net.Listener

	mu      sync.Mutex
	random  *rand.Rand
	links   map[*link]struct{}
	pace    [2]time.Duration
	open    chan struct{} // closed while there is no black hole
	refuse  bool
	commits Commits
	counts  Counts
	ended   bool
}

// direction is where data goes.
type direction int

const (
	toServer direction = iota
	toClient
)

// Start starts a proxy that lasts as long as the test.
func Start(tb testing.TB, o Options) *Proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{
		options: o, listener: listener, random: rand.New(rand.NewPCG(o.Seed, 0)),
		links: map[*link]struct{}{}, open: make(chan struct{}),
	}
	close(p.open)
	var wg sync.WaitGroup
	wg.Go(func() { p.accept(&wg) })
	tb.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		p.ended = true
		p.mu.Unlock()
		p.end()
		wg.Wait()
	})
	return p
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Latency delays what is sent from now on, each way.
func (p *Proxy) Latency(toServer, toClient time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pace = [2]time.Duration{toServer, toClient}
}

// BlackHole lets nothing through, not even the end of a connection, and tells
// nobody. When it is gone, what it held goes on its way, as if it had been sent
// again. Probes of the kernel are still answered by the proxy's own.
func (p *Proxy) BlackHole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
		if on {
			p.open = make(chan struct{})
		}
	default:
		if !on {
			close(p.open)
		}
	}
}

// Refuse resets new connections at once.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// LoseCommits cuts connections between a commit and its answer.
func (p *Proxy) LoseCommits(c Commits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commits = c
}

// Cut resets all connections, and answers how many there were.
func (p *Proxy) Cut() int {
	n := p.end()
	p.count(func(c *Counts) { c.Cut += n })
	return n
}

func (p *Proxy) end() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
	n := len(p.links)
	clear(p.links)
	return n
}

// Counts are what has happened so far.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

func (p *Proxy) count(change func(*Counts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.counts)
}

func (p *Proxy) accept(wg *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.refuses() {
			reset(client)
			continue
		}
		wg.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) refuses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse {
		p.counts.Refused++
	} else {
		p.counts.Accepted++
	}
	return p.refuse
}

func (p *Proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.options.Target)
	if err != nil {
		p.count(func(c *Counts) { c.Unreachable++ })
		reset(client)
		return
	}
	l := &link{proxy: p, conns: [2]net.Conn{toServer: server, toClient: client}, done: make(chan struct{})}
	p.mu.Lock()
	p.links[l] = struct{}{}
	if p.ended {
		l.reset()
	}
	p.mu.Unlock()
	l.relay()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// delay is how long a piece of data takes that is sent now.
func (p *Proxy) delay(d direction) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pace[d] > 0 {
		p.counts.Delayed++
	}
	return p.pace[d]
}

// gate is closed while data may pass.
func (p *Proxy) gate() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		p.counts.Held++
	}
	return p.open
}

// fate is what happens to the answer to a commit.
type fate int

const (
	relayed fate = iota
	lost
	lostEarly
)

func (p *Proxy) decide(implicit bool) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if implicit && !p.commits.Implicit {
		return relayed
	}
	p.counts.Commits++
	// Both are drawn each time, so that a seed gives the same row of choices.
	loses, early := p.random.Float64() < p.commits.Probability, p.random.Float64() < p.commits.Early
	switch {
	case !loses:
		return relayed
	case early:
		p.counts.Lost++
		p.counts.LostEarly++
		return lostEarly
	default:
		p.counts.Lost++
		return lost
	}
}

// reset closes a connection so that the other side is told.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
