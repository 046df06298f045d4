package webhook

import "time"

const (
	// failuresToClose is after how many failures in a row an endpoint is only
	// probed, with one request at a time.
	failuresToClose = 10
	perProbe        = 1
	// memory is how long it is remembered that an endpoint or a host has failed.
	memory = time.Hour
)

// endpoint is what the courier knows of a webhook.
type endpoint struct {
	host     hostKey
	queue    []Due
	more     bool // the store may have more of it
	flying   int
	slow     bool
	failures int // in a row
	probes   int // that failed since it is only probed
	openAt   time.Time
	notedAt  time.Time
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
// alone for the times of the schedule, with one probe after each. What was under
// way when it was closed does not count as a probe.
func (e *endpoint) note(ok bool, took time.Duration, now time.Time) {
	e.notedAt, e.slow = now, took > slowAfter
	if ok {
		e.failures, e.probes, e.openAt = 0, 0, time.Time{}
		return
	}
	e.failures++
	if e.failures >= failuresToClose && !e.closed(now) {
		e.openAt = now.Add(delays[min(e.probes, len(delays)-1)])
		e.probes++
	}
}

// forgettable tells that nothing is known of the endpoint that must be kept.
func (e *endpoint) forgettable(now time.Time) bool {
	if len(e.queue) > 0 || e.flying > 0 {
		return false
	}
	return e.failures == 0 && !e.slow || now.Sub(e.notedAt) >= memory && now.Sub(e.openAt) >= memory
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

// hostKey is a host as one workspace reaches it.
type hostKey struct{ workspaceID, name string }

// host is how a host has answered one workspace lately, over all endpoints that
// lead to it.
type host struct {
	health  float64 // the share of successes, the latest counting most
	seen    int
	nextAt  time.Time
	notedAt time.Time
}

func (h *host) note(ok bool, now time.Time) {
	h.seen++
	h.notedAt = now
	outcome := 0.0
	if ok {
		outcome = 1
	}
	h.health += weight * (outcome - h.health)
}

func (h *host) forgettable(now time.Time) bool { return now.Sub(h.notedAt) >= memory }

// reserve answers how long to wait before the next request to the host, or
// takes the turn and answers zero.
func (h *host) reserve(now time.Time) time.Duration {
	if h.seen < leastSeen || h.health >= sick {
		return 0
	}
	if wait := h.nextAt.Sub(now); wait > 0 {
		return wait
	}
	h.nextAt = now.Add(time.Second / perSecond)
	return 0
}
