package webhook

import "time"

const (
	// failuresToClose is after how many failures in a row an endpoint is only
	// probed.
	failuresToClose = 10
	// An endpoint that is probed gets one request at a time.
	perProbe = 1
)

// endpoint is what the courier knows of a webhook while there is something to
// send to it.
type endpoint struct {
	queue    []Parcel
	flying   int
	failures int // in a row
	openAt   time.Time
}

// most is how many requests may be under way.
func (e *endpoint) most() int {
	if e.failures >= failuresToClose {
		return perProbe
	}
	return perEndpoint
}

// closed tells that the endpoint is not tried before openAt.
func (e *endpoint) closed(now time.Time) bool { return now.Before(e.openAt) }

// note takes an outcome in. After many failures in a row the endpoint is left
// alone for the times of the schedule, with one probe after each.
func (e *endpoint) note(ok bool, now time.Time) {
	if ok {
		e.failures, e.openAt = 0, time.Time{}
		return
	}
	e.failures++
	if over := e.failures - failuresToClose; over >= 0 {
		e.openAt = now.Add(delays[min(over, len(delays)-1)])
	}
}

// idle tells that nothing is known of the endpoint that must be kept.
func (e *endpoint) idle(now time.Time) bool {
	return len(e.queue) == 0 && e.flying == 0 && e.failures == 0 && !e.closed(now)
}

const (
	// sick is the share of successes below which a host gets few requests.
	sick = 0.9
	// perSecond is how many that are.
	perSecond = 10
	// weight is how much the latest outcome counts.
	weight = 0.1
	// leastSeen is how many outcomes it takes to tell.
	leastSeen = 20
)

// host is how a host has answered one workspace lately, over all endpoints that
// lead to it.
type host struct {
	health float64 // the share of successes, the latest counting most
	seen   int
	nextAt time.Time
}

func (h *host) healthy() bool { return h.seen < leastSeen || h.health >= sick }

func (h *host) note(ok bool) {
	h.seen++
	outcome := 0.0
	if ok {
		outcome = 1
	}
	h.health += weight * (outcome - h.health)
}

// reserve answers how long to wait before the next request to the host, or
// takes the turn and answers zero.
func (h *host) reserve(now time.Time) time.Duration {
	if h.healthy() {
		return 0
	}
	if wait := h.nextAt.Sub(now); wait > 0 {
		return wait
	}
	h.nextAt = now.Add(time.Second / perSecond)
	return 0
}
