package crash_test

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
)

// ledger records everything that the service has acknowledged, with its content.
// Requests without a response are only counted: they may have taken effect, but at most
// once.
type ledger struct {
	mu        sync.Mutex
	workflows []*workflow
	runs      []*execution
	webhooks  []webhook
	keys      []apiKey
	counts    counts
}

type counts struct {
	attempts, answered, lost, repeated, replays int
	cancels, rejectedCancels                    int
}

// workflow is an acknowledged workflow. Only one client changes it.
type workflow struct {
	id, name, description string
	version               int
	versions              map[int]chain
	// uncertain is a change that got no response.
	uncertain chain
}

// execution is an acknowledged run.
type execution struct {
	id      string
	of      *workflow
	version int
	n       int64
	// cancel is the outcome of a request to cancel it.
	cancel cancelState
	// final is the response body once the run has ended.
	final []byte
}

type cancelState int

const (
	notRequested cancelState = iota
	unknown                  // requested, no response
	confirmed
	rejected // it had already ended
)

type webhook struct {
	id, url, workflowID, secret string
}

type apiKey struct {
	id, name, value string
}

func (l *ledger) count(change func(*counts)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.counts)
}

func (l *ledger) addWorkflow(w *workflow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workflows = append(l.workflows, w)
}

func (l *ledger) addRun(e *execution) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = append(l.runs, e)
}

func (l *ledger) addWebhook(w webhook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.webhooks = append(l.webhooks, w)
}

func (l *ledger) addKey(k apiKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = append(l.keys, k)
}

// sizes returns how much was acknowledged.
func (l *ledger) sizes() (workflows, runs, webhooks, keys int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.workflows), len(l.runs), len(l.webhooks), len(l.keys)
}

// chain returns the chain of the run's version.
func (e *execution) chain() chain { return e.of.versions[e.version] }

// check compares the run, as the API returns it now, with what was acknowledged and with
// earlier responses.
func (e *execution) check(now runBody, body []byte) []string {
	var out []string
	report := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("INVARIANT: run %s (%s): ", e.id, now.Status)+fmt.Sprintf(format, args...))
	}
	if now.ID != e.id || now.WorkflowID != e.of.id || now.WorkflowVersion != e.version || now.Trigger.Payload.N != e.n {
		report("it is not the run that was acknowledged: %s", body)
		return out
	}
	if e.final != nil && !bytes.Equal(e.final, body) {
		report("it had ended and then changed\nwas %s\nis  %s", e.final, body)
	}
	switch {
	case e.cancel == confirmed && now.Status != cancelled:
		report("its cancel was acknowledged")
	case (e.cancel == notRequested || e.cancel == rejected) && now.Status == cancelled:
		report("no client cancelled it")
	case e.cancel == rejected && now.Status == running:
		report("its cancel was rejected because it had ended")
	}
	if now.Status != running {
		e.final = slices.Clone(body)
	}
	return append(out, e.chain().violations(now)...)
}
