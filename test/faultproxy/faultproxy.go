// Package faultproxy simulates network faults between a client and a server. It is a
// TCP proxy on loopback whose faults can change while it runs and which counts what it
// did. It understands enough of PostgreSQL's protocol to lose the response to a COMMIT.
package faultproxy

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Options configures a proxy.
type Options struct {
	// Target is the address of the server.
	Target string
	// Postgres says that the server speaks PostgreSQL's protocol. Encrypted
	// connections are relayed without inspection.
	Postgres bool
	// Seed seeds the random choices.
	Seed uint64
}

// Commits configures which responses to commits are lost.
type Commits struct {
	// Probability is the probability that a response is lost, from 0 to 1.
	Probability float64
	// Early is the fraction of lost responses for which the client is disconnected as
	// soon as the commit is sent: the commit may take effect after the client has
	// looked for it, or not at all if the client cancels it in time. For the others
	// the client is disconnected when the server has responded.
	Early float64
	// Implicit includes writes outside of a transaction, which commit implicitly.
	Implicit bool
}

// Counts counts what has happened so far.
type Counts struct {
	Accepted    int // accepted connections
	Refused     int // connections that Refuse reset
	Unreachable int // connections that could not reach the server
	Cut         int // connections that Cut reset
	Delayed     int // chunks that latency delayed
	Held        int // chunks and ends of streams that the black hole held
	Commits     int // commits sent to the server
	Lost        int // commits whose response was lost
	LostEarly   int // those of them that the server had not responded to yet
}

// Proxy is a running proxy. Its methods are safe for concurrent use.
type Proxy struct {
	options  Options
	listener net.Listener

	mu      sync.Mutex
	random  *rand.Rand
	links   map[*link]struct{}
	latency [2]time.Duration
	open    chan struct{} // closed while there is no black hole
	refuse  bool
	commits Commits
	counts  Counts
	ended   bool
}

// direction is the direction of data.
type direction int

const (
	toServer direction = iota
	toClient
)

// Start starts a proxy that runs until the end of the test.
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

// Addr returns the address of the proxy.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Latency delays data that is sent from now on, in each direction.
func (p *Proxy) Latency(toServer, toClient time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = [2]time.Duration{toServer, toClient}
}

// BlackHole silently holds all data, even the end of a connection. When it is turned
// off, the held data is sent, as if it had been retransmitted. The kernel still responds
// to keepalive probes.
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

// Refuse sets whether new connections are reset.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// LoseCommits resets connections between a commit and its response.
func (p *Proxy) LoseCommits(c Commits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commits = c
}

// Cut resets all connections and returns their number.
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

// Counts returns what has happened so far.
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

// delay returns the latency of data that is sent now.
func (p *Proxy) delay(d direction) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latency[d] > 0 {
		p.counts.Delayed++
	}
	return p.latency[d]
}

// gate returns a channel that is closed while data may pass.
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

// fate is what happens to the response to a commit.
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
	// Both are drawn each time, so that a seed gives the same sequence of choices.
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

// reset closes a connection with a TCP reset.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
