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

	"github.com/stepmill/stepmill/internal/fairqueue"
	"github.com/stepmill/stepmill/internal/txn"
)

// Config configures a Pool.
type Config struct {
	// Command starts a child process: a program that calls [Serve].
	Command []string
	// Size is the maximum number of scripts that run at the same time. One
	// workspace can use all of them until Share is called.
	Size int
	// Scripts is how many scripts a child runs before it is replaced, and Idle how
	// long it may be idle before it is stopped. The defaults are 1,000 and a minute.
	Scripts int
	Idle    time.Duration
	Log     *slog.Logger
}

const (
	defaultScripts = 1000
	defaultIdle    = time.Minute
	// compileCPU bounds the processor time of compiling, and compileTimeout the time, because on a
	// busy machine the code of one line can take longer than compileCPU.
	compileCPU, compileTimeout = 2 * time.Second, 30 * time.Second
	// checkSlots is how many checks run at the same time, checksPerWorkspace how many of them are
	// of one workspace, so that code that takes long to compile delays no other, and
	// maxWaitingChecks how many more of its checks may wait.
	checkSlots, checksPerWorkspace, maxWaitingChecks = 2, 1, 16
)

// Pool keeps warm child processes and gives each script exclusive use of one. It
// starts a child if no warm one is available.
type Pool struct {
	config Config
	// scripts has the slots of running scripts. Checks have their own: they are
	// short and must not wait for long scripts.
	scripts, checks *fairqueue.Queue

	closing context.Context
	close   context.CancelFunc
	mu      sync.Mutex
	warm    []*child // most recently used last
	// launcher is used under the lock.
	launcher launcher
	running  sync.WaitGroup
	// processes counts running processes, started all that were ever started.
	processes, started atomic.Int64
}

// New returns a pool without any processes.
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
	if !canFilter() {
		config.Log.Warn("scripts run without a filter for system calls; it needs Linux on amd64 or arm64, and a kernel with seccomp")
	}
	config.Size = max(config.Size, 1)
	p := &Pool{
		config: config, scripts: fairqueue.New(config.Size, config.Size, 0),
		checks: fairqueue.New(checkSlots, checksPerWorkspace, maxWaitingChecks),
	}
	p.closing, p.close = context.WithCancel(context.Background())
	return p
}

// Share limits each workspace to three quarters of the slots for scripts, so that
// the long scripts of one leave room for those of others. With a single slot,
// workspaces only take turns.
func (p *Pool) Share() { p.scripts.SetShare(max(1, p.config.Size*3/4)) }

// Acquire waits until a script of the workspace may run and returns a function
// that must be called when the script has ended. The error is [ErrClosed], or
// that of the context if it ended first.
func (p *Pool) Acquire(ctx context.Context, workspaceID string) (release func(), err error) {
	return p.acquireSlot(ctx, p.scripts, workspaceID)
}

// acquireSlot waits for a slot until the context ends or the pool is closed.
func (p *Pool) acquireSlot(ctx context.Context, slots *fairqueue.Queue, workspaceID string) (release func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.closing, func() { cancel(ErrClosed) })()
	return slots.Acquire(ctx, workspaceID)
}

// Run runs a script and waits until it ends. The caller must have acquired a
// slot. The error is a *[Failure] if the script or its process failed, that of the
// [Storage] if it failed, or the context's error if the context ended first. The lines
// of the outcome are valid even after an error.
func (p *Pool) Run(ctx context.Context, script Script) (Outcome, error) {
	switch {
	case len(script.Code) > MaxCode:
		return Outcome{}, &Failure{Kind: InputTooLarge, Message: fmt.Sprintf("the code has %d bytes; the limit is %d", len(script.Code), MaxCode)}
	case len(script.Input) > MaxInput:
		return Outcome{}, &Failure{Kind: InputTooLarge, Message: fmt.Sprintf("the input has %d bytes; the limit is %d", len(script.Input), MaxInput)}
	}
	frame, err := encodeFrame(frameRun, request{Code: script.Code, Input: script.Input, Marker: script.Files.Marker, Files: script.Files.Given})
	if err != nil {
		return Outcome{}, fmt.Errorf("encode the script: %w", err)
	}
	return p.send(ctx, frame, script.Files, limits{time: script.Limit})
}

// Check compiles code of a workspace without running it. It returns a Failure if
// the code does not compile. The error is [fairqueue.ErrFull] if too many checks of
// the workspace wait already.
func (p *Pool) Check(ctx context.Context, workspaceID, code string) (*Failure, error) {
	if len(code) > MaxCode {
		return &Failure{Kind: InputTooLarge, Message: fmt.Sprintf("has %d bytes; the limit is %d", len(code), MaxCode)}, nil
	}
	release, err := p.acquireSlot(ctx, p.checks, workspaceID)
	if err != nil {
		return nil, err
	}
	defer release()
	frame, err := encodeFrame(frameCheck, request{Code: code})
	if err != nil {
		return nil, fmt.Errorf("encode the code: %w", err)
	}
	_, err = p.send(ctx, frame, Files{}, limits{time: compileTimeout, cpu: compileCPU})
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure, nil
	}
	return nil, err
}

func (p *Pool) send(ctx context.Context, frame []byte, files Files, limit limits) (Outcome, error) {
	txn.MustBeOutside(ctx)
	c, err := p.acquire()
	if err != nil {
		return Outcome{}, err
	}
	return p.roundTrip(ctx, c, frame, files, limit)
}

// roundTrip sends the child a request. It kills a child that misbehaves or does
// not reply in time.
func (p *Pool) roundTrip(ctx context.Context, c *child, frame []byte, files Files, limit limits) (Outcome, error) {
	own, cancel := limit.apply(ctx, c)
	defer cancel()
	stopKill := context.AfterFunc(own, c.kill)
	outcome, err := c.roundTrip(own, frame, files)
	inTime := stopKill()

	failure, replied := errors.AsType[*Failure](err)
	if inTime && (err == nil || replied && failure.Kind != Crashed) {
		p.release(c)
		return outcome, err
	}
	c.kill()
	<-c.exited
	switch {
	case err == nil || replied: // it replied just before
		return outcome, err
	case ctx.Err() != nil:
		return outcome, ctx.Err()
	case own.Err() != nil:
		return outcome, &Failure{Kind: Timeout, Message: fmt.Sprintf("the script did not end within %v", limit.time)}
	case p.closing.Err() != nil:
		return outcome, ErrClosed
	case errors.Is(err, errMemory):
		return outcome, &Failure{Kind: Memory, Message: errMemory.Error()}
	}
	if ofStorage, ok := errors.AsType[storageError](err); ok {
		return outcome, ofStorage.error
	}
	failure = c.exitFailure()
	level := slog.LevelWarn
	if failure.Kind == Memory {
		level = slog.LevelDebug
	}
	p.config.Log.Log(ctx, level, "a script process exited unexpectedly",
		"kind", failure.Kind, "error", err, "state", c.cmd.ProcessState.String(), "stderr", c.stderr.String())
	return outcome, failure
}

func (p *Pool) acquire() (*child, error) {
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
		case <-c.exited: // it was killed or crashed while idle
			c.kill()
		default:
			return c, nil
		}
	}
	c, err := p.launcher.start(p.closing, p.config.Command)
	if err != nil {
		p.config.Log.Error("cannot start a script process", "error", err)
		return nil, &Failure{Kind: Lost, Message: "the server could not start a process for the script"}
	}
	p.running.Add(1)
	p.processes.Add(1)
	p.started.Add(1)
	stop := context.AfterFunc(p.closing, c.kill)
	go func() {
		defer p.running.Done()
		_ = c.cmd.Wait() // see ProcessState
		close(c.exited)
		p.processes.Add(-1)
		stop()
	}()
	return c, nil
}

// release keeps a child warm for the next script, or stops it after enough scripts.
func (p *Pool) release(c *child) {
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

func (p *Pool) retire(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.warm, c); i >= 0 {
		p.warm = slices.Delete(p.warm, i, i+1)
		c.kill()
	}
}

// Stats describes the processes and scripts of a pool.
type Stats struct {
	// Processes is the number of running processes, Scripts of running scripts, and
	// Waiting of scripts that wait for a slot.
	Processes, Scripts, Waiting int
	// Started is the number of processes started so far.
	Started int64
}

// Stats returns the current statistics.
func (p *Pool) Stats() Stats {
	running, waiting := p.scripts.Stats()
	return Stats{Processes: int(p.processes.Load()), Scripts: running, Waiting: waiting, Started: p.started.Load()}
}

// Close kills every child, even during a script, and waits until all have exited.
func (p *Pool) Close() {
	p.mu.Lock() // so that no child is being started
	p.close()
	p.mu.Unlock()
	p.running.Wait()
}
