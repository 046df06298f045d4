package sandbox

// MappingFactor is more than 1 under the race detector, which needs time and memory.
const MappingFactor = mappingFactor

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
