package sandbox

import "context"

// MappingFactor is more than 1 under the race detector, which needs time and memory.
const MappingFactor = mappingFactor

// AcquireAndRun runs a script in a slot of its own.
func (p *Pool) AcquireAndRun(ctx context.Context, script Script) (Outcome, error) {
	release, err := p.Acquire(ctx, "ws")
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	return p.Run(ctx, script)
}

// Pids returns the ids of the warm processes.
func (p *Pool) Pids() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var pids []int
	for _, c := range p.warm {
		pids = append(pids, c.cmd.Process.Pid)
	}
	return pids
}
