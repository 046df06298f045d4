package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config says what a pool is made of.
type Config struct {
	// Command starts a child: a program that calls [Serve].
	Command []string
	// Size is how many scripts run at the same time.
	Size int
	// Scripts is how many scripts a child runs before it is replaced, and Idle
	// how long it may have none; 0: 1,000 and a minute.
	Scripts int
	Idle    time.Duration
	Log     *slog.Logger
}

const (
	defaultScripts = 1000
	defaultIdle    = time.Minute
	// checkTime is how long compiling may take.
	checkTime = 2 * time.Second
)

// Pool keeps children warm and gives each script one of its own while it runs.
// A child is started when there is none at hand.
type Pool struct {
	config Config
	// slots are taken by scripts that run. Checks have one to themselves: they
	// are short and must not wait behind scripts that take their time.
	slots, checks chan struct{}

	closing context.Context
	close   context.CancelFunc
	mu      sync.Mutex
	warm    []*child // the last used is the last
	alive   sync.WaitGroup
	// processes counts those alive, started all that ever were.
	processes, started atomic.Int64
}

// New makes a pool. It starts nothing.
func New(config Config) *Pool {
	if config.Scripts == 0 {
		config.Scripts = defaultScripts
	}
	if config.Idle == 0 {
		config.Idle = defaultIdle
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	p := &Pool{config: config, slots: make(chan struct{}, max(config.Size, 1)), checks: make(chan struct{}, 1)}
	p.closing, p.close = context.WithCancel(context.Background())
	return p
}

// Run runs a script and waits for its end. The error is a *[Failure] if the
// script is the reason, or its process; that of the context if its time was
// over before that of the script. The lines of the outcome count in any case.
func (p *Pool) Run(ctx context.Context, script Script) (Outcome, error) {
	switch {
	case len(script.Code) > MaxCode:
		return Outcome{}, &Failure{Kind: InputTooLarge, Message: fmt.Sprintf("the code has %d bytes; at most %d can be run", len(script.Code), MaxCode)}
	case len(script.Input) > MaxInput:
		return Outcome{}, &Failure{Kind: InputTooLarge, Message: fmt.Sprintf("the input has %d bytes; at most %d can be given", len(script.Input), MaxInput)}
	}
	frame, err := encodeFrame(frameRun, request{Code: script.Code, Input: script.Input})
	if err != nil {
		return Outcome{}, fmt.Errorf("encode the script: %w", err)
	}
	return p.within(ctx, p.slots, frame, script.Limit)
}

// Check compiles code and runs nothing. It gives nil, or what is wrong.
func (p *Pool) Check(ctx context.Context, code string) (*Failure, error) {
	if len(code) > MaxCode {
		return &Failure{Kind: InputTooLarge, Message: fmt.Sprintf("has %d bytes; at most %d can be run", len(code), MaxCode)}, nil
	}
	frame, err := encodeFrame(frameCheck, request{Code: code})
	if err != nil {
		return nil, fmt.Errorf("encode the code: %w", err)
	}
	_, err = p.within(ctx, p.checks, frame, checkTime)
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure, nil
	}
	return nil, err
}

// within takes a slot and a child, and asks it.
func (p *Pool) within(ctx context.Context, slots chan struct{}, frame []byte, limit time.Duration) (Outcome, error) {
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	case <-p.closing.Done():
		return Outcome{}, ErrClosed
	}
	c, err := p.take()
	if err != nil {
		return Outcome{}, err
	}
	return p.ask(ctx, c, frame, limit)
}

// ask gives the child a request. A child that does not answer well, or in time,
// is killed.
func (p *Pool) ask(ctx context.Context, c *child, frame []byte, limit time.Duration) (Outcome, error) {
	own, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		own, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	settled := context.AfterFunc(own, c.kill)
	outcome, err := c.ask(frame)
	inTime := settled()

	failure, replied := errors.AsType[*Failure](err)
	if inTime && (err == nil || replied && failure.Kind != Crashed) {
		p.put(c)
		return outcome, err
	}
	c.kill()
	<-c.exited
	switch {
	case err == nil || replied: // it had answered, just before
		return outcome, err
	case ctx.Err() != nil:
		return outcome, ctx.Err()
	case own.Err() != nil:
		return outcome, &Failure{Kind: Timeout, Message: fmt.Sprintf("the script did not end within %v", limit)}
	case p.closing.Err() != nil:
		return outcome, ErrClosed
	case errors.Is(err, errMemory):
		return outcome, &Failure{Kind: Memory, Message: errMemory.Error()}
	}
	failure = c.postMortem()
	level := slog.LevelWarn
	if failure.Kind == Memory {
		level = slog.LevelDebug
	}
	p.config.Log.Log(ctx, level, "a process that runs scripts ended in the middle",
		"kind", failure.Kind, "error", err, "state", c.cmd.ProcessState.String(), "stderr", c.last.String())
	return outcome, failure
}

// take gives a warm child, or a new one.
func (p *Pool) take() (*child, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing.Err() != nil {
		return nil, ErrClosed
	}
	for len(p.warm) > 0 {
		c := p.warm[len(p.warm)-1]
		p.warm = p.warm[:len(p.warm)-1]
		c.idle.Stop()
		select {
		case <-c.exited: // somebody has ended it
			c.kill()
		default:
			return c, nil
		}
	}
	c, err := startChild(p.config.Command)
	if err != nil {
		p.config.Log.Error("cannot start a process for scripts", "error", err)
		return nil, &Failure{Kind: Lost, Message: "no process could be started for the script"}
	}
	p.alive.Add(1)
	p.processes.Add(1)
	p.started.Add(1)
	stop := context.AfterFunc(p.closing, c.kill)
	go func() {
		defer p.alive.Done()
		c.reap()
		p.processes.Add(-1)
		stop()
	}()
	return c, nil
}

// put keeps a child warm for the next script, unless it has served long enough.
func (p *Pool) put(c *child) {
	c.served++
	if c.served >= p.config.Scripts {
		c.kill()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.idle = time.AfterFunc(p.config.Idle, func() { p.retire(c) })
	p.warm = append(p.warm, c)
}

// retire ends a child that has had nothing to do for long.
func (p *Pool) retire(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.warm, c); i >= 0 {
		p.warm = slices.Delete(p.warm, i, i+1)
		c.kill()
	}
}

// Stats is what a pool has done so far, and what it is busy with.
type Stats struct {
	// Processes is how many are alive, Scripts how many scripts they run.
	Processes, Scripts int
	// Started is how many processes were started.
	Started int64
}

// Stats tells what the pool does.
func (p *Pool) Stats() Stats {
	return Stats{Processes: int(p.processes.Load()), Scripts: len(p.slots), Started: p.started.Load()}
}

// Close ends every child, also in the middle of a script, and waits until they
// are gone.
func (p *Pool) Close() {
	p.mu.Lock() // nobody is about to start one
	p.close()
	p.mu.Unlock()
	p.alive.Wait()
}
