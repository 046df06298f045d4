package webhook

// Exported for tests.
var (
	SignService  = signService
	SignStandard = signStandard
	NextDelay    = nextDelay
	Delays       = delays
)

// Limits that tests check.
const (
	PerNode     = maxInFlight
	PerEndpoint = inFlightPerEndpoint
	MostQueued  = maxQueued
	Enough      = maxPerEndpoint
	Memory      = healthTTL
	Patience    = requestTimeout
	KeptAnswer  = maxResponse
)

// Held counts what a sender has in memory. While it is read, the sender must not run,
// or all of its goroutines must be blocked.
type Held struct {
	Endpoints, Waiting, Hosts, Known, First, Queued, Flying, Slow int
}

// Held returns what the sender has in memory.
func (s *Sender) Held() Held {
	return Held{len(s.endpoints), len(s.waiting), len(s.hosts), len(s.known), len(s.firstAttempts), s.queued, s.inFlight, s.slow}
}
