package webhook

import "time"

const (
	// After failuresToPause consecutive failures an endpoint is paused, and then only
	// probed, with one request at a time.
	failuresToPause  = 10
	inFlightPerProbe = 1
	// healthTTL is how long a failure of an endpoint or a host is remembered.
	healthTTL = time.Hour
)

// endpoint is the sender's state of one webhook.
type endpoint struct {
	host        hostKey
	queue       []Due
	more        bool // the store may have more deliveries for it
	inFlight    int
	slow        bool
	failures    int // consecutive
	probes      int // failed probes since it was first paused
	pausedUntil time.Time
	recordedAt  time.Time
}

func (e *endpoint) limit() int {
	if e.failures >= failuresToPause {
		return inFlightPerProbe
	}
	return inFlightPerEndpoint
}

func (e *endpoint) paused(now time.Time) bool { return now.Before(e.pausedUntil) }

// record records an outcome. After failuresToPause consecutive failures the
// endpoint is paused for the delays of the retry schedule, with one probe after
// each. Requests that were in flight when it was paused do not count as probes.
func (e *endpoint) record(ok bool, took time.Duration, now time.Time) {
	e.recordedAt, e.slow = now, took > slowAfter
	if ok {
		e.failures, e.probes, e.pausedUntil = 0, 0, time.Time{}
		return
	}
	e.failures++
	if e.failures >= failuresToPause && !e.paused(now) {
		e.pausedUntil = now.Add(delays[min(e.probes, len(delays)-1)])
		e.probes++
	}
}

// forgettable reports whether nothing worth keeping is known about the endpoint.
func (e *endpoint) forgettable(now time.Time) bool {
	if len(e.queue) > 0 || e.inFlight > 0 {
		return false
	}
	return e.failures == 0 && !e.slow || now.Sub(e.recordedAt) >= healthTTL && now.Sub(e.pausedUntil) >= healthTTL
}

const (
	// A host whose success rate is below unhealthyBelow is throttled, so that many webhooks cannot
	// be used to flood one that is failing.
	unhealthyBelow = 0.9
	// unhealthyRate is the number of requests per second it gets then.
	unhealthyRate = 10
	// latestWeight is the weight of the latest outcome in the success rate.
	latestWeight = 0.1
	// minOutcomes is the number of outcomes needed to judge a host.
	minOutcomes = 20
)

// hostKey identifies a host as seen by one workspace.
type hostKey struct{ workspaceID, name string }

// host is the recent health of a host for one workspace, across all endpoints on
// it.
type host struct {
	health     float64 // moving average of the success rate
	outcomes   int
	nextAt     time.Time
	recordedAt time.Time
}

func (h *host) record(ok bool, now time.Time) {
	h.outcomes++
	h.recordedAt = now
	outcome := 0.0
	if ok {
		outcome = 1
	}
	h.health += latestWeight * (outcome - h.health)
}

func (h *host) forgettable(now time.Time) bool { return now.Sub(h.recordedAt) >= healthTTL }

// reserve returns how long to wait before the next request to the host. Zero means
// that the request may be sent now, and reserves its place.
func (h *host) reserve(now time.Time) time.Duration {
	if h.outcomes < minOutcomes || h.health >= unhealthyBelow {
		return 0
	}
	if wait := h.nextAt.Sub(now); wait > 0 {
		return wait
	}
	h.nextAt = now.Add(time.Second / unhealthyRate)
	return 0
}
