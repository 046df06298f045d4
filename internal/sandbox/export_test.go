package sandbox

// Shadow is more than 1 under the race detector, where all is slow and large.
const Shadow = shadow

// Pids are the processes that wait for a script.
func (p *Pool) Pids() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var pids []int
	for _, c := range p.warm {
		pids = append(pids, c.cmd.Process.Pid)
	}
	return pids
}
