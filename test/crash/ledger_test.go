package crash_test

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
)

// ledger holds everything that the service has acknowledged, with its content.
// What was asked for and never answered is only counted: it may or may not have
// happened, but at most once.
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
	cancels, refusedCancels                     int
}

// workflow is an acknowledged workflow. Only one client changes it.
type workflow struct {
	id, name, description string
	version               int
	versions              map[int]chain
	// unsure is a change whose answer was lost.
	unsure chain
}

// execution is an acknowledged run.
type execution struct {
	id      string
	of      *workflow
	version int
	n       int64
	// cancel says what is known of an attempt to cancel it.
	cancel cancelState
	// final is the whole body from the moment it was seen ended.
	final []byte
}

type cancelState int

const (
	notAsked cancelState = iota
	perhaps              // asked, never answered
	confirmed
	refused // it had ended before
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

// sizes tells how much was acknowledged.
func (l *ledger) sizes() (workflows, runs, webhooks, keys int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.workflows), len(l.runs), len(l.webhooks), len(l.keys)
}

// chain is what the run's version does.
func (e *execution) chain() chain { return e.of.versions[e.version] }

// judge holds the run, as the API shows it now, against what was acknowledged
// and against every earlier look at it.
func (e *execution) judge(now runBody, body []byte) []string {
	var out []string
	report := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("run %s (%s): ", e.id, now.Status)+fmt.Sprintf(format, args...))
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
	case (e.cancel == notAsked || e.cancel == refused) && now.Status == cancelled:
		report("nobody cancelled it")
	case e.cancel == refused && now.Status == running:
		report("its cancel was refused because it had ended")
	}
	if now.Status != running {
		e.final = slices.Clone(body)
	}
	return append(out, e.chain().violations(now)...)
}
