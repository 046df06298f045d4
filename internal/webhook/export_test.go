package webhook

// The parts that tests look at.
var (
	SignService  = signService
	SignStandard = signStandard
	NextDelay    = nextDelay
	Delays       = delays
)

// The bounds that tests hold the courier to.
const (
	PerNode     = perNode
	PerEndpoint = perEndpoint
	MostQueued  = mostQueued
	Enough      = enough
	Memory      = memory
	Patience    = patience
	KeptAnswer  = keptAnswer
)

// Held is what a courier has in memory. It must not run meanwhile, or all of its
// goroutines must be blocked.
type Held struct {
	Endpoints, Waiting, Hosts, Known, First, Queued, Flying, Slow int
}

// Held counts what the courier has in memory.
func (c *Courier) Held() Held {
	return Held{len(c.endpoints), len(c.waiting), len(c.hosts), len(c.known), len(c.first), c.queued, c.flying, c.slow}
}
