package run

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/action"
)

// Waiting describes what a run waits for.
type Waiting struct {
	Kind   WaitKind
	Reason string
	StepID string
	// Connection is the name of the connection that has to be reconnected, if Kind
	// is ForConnection.
	Connection string
	Until      *time.Time
}

// WaitKind says what kind of thing a run waits for.
type WaitKind string

// The kinds.
const (
	ForSlot       WaitKind = "slot"  // the run is queued
	ForTime       WaitKind = "time"  // a step continues at a time
	ForRetry      WaitKind = "retry" // a step failed and is tried again
	ForAnswer     WaitKind = "answer"
	ForRun        WaitKind = "run" // that a step started
	ForConnection WaitKind = "connection"
)

// WaitingFor returns what the run waits for: a slot or, if no step is running, the
// step that wakes up first. It returns nil if a step is running or the run has
// ended.
func (d Detail) WaitingFor() *Waiting {
	if d.Status != Running {
		return nil
	}
	facts := WaitFacts{HeldBack: d.HeldBack, Queued: d.Queued, Crashes: d.Crashes, ConcurrencyKey: d.ConcurrencyKey}
	if w := facts.waiting(); w != nil {
		return w
	}
	return WaitingStep(func(yield func(*Step) bool) {
		for i := range d.Steps {
			if !yield(&d.Steps[i]) {
				return
			}
		}
	}).waiting()
}

// WaitFacts holds the facts that decide what a running run waits for.
type WaitFacts struct {
	HeldBack       bool
	Queued         bool
	Crashes        int
	ConcurrencyKey string
	// Step is the step that the run waits for; nil for none.
	Step *Step
}

// WaitingFor returns what the run waits for, or nil.
func (p WaitFacts) WaitingFor() *Waiting {
	if w := p.waiting(); w != nil {
		return w
	}
	return p.Step.waiting()
}

// waiting returns what keeps the run from being executed, or nil.
func (p WaitFacts) waiting() *Waiting {
	switch {
	case p.HeldBack:
		return &Waiting{Kind: ForSlot, Reason: "queued: the concurrency limit of the workflow" + forKey(p.ConcurrencyKey) + " is reached"}
	case p.Queued && p.Crashes >= crashesToIsolate:
		return &Waiting{Kind: ForSlot, Reason: fmt.Sprintf("queued: executed in isolation because the service crashed %d times while it was running", p.Crashes)}
	case p.Queued:
		return &Waiting{Kind: ForSlot, Reason: "queued: the concurrency limit is reached"}
	}
	return nil
}

func (s *Step) waiting() *Waiting {
	if s == nil {
		return nil
	}
	w := &Waiting{Kind: ForTime, Reason: s.Reason, StepID: s.Path, Until: s.WaitsUntil()}
	name, awaitsConnection := s.Awaits.Connection()
	switch {
	case s.Error != nil:
		w.Kind = ForRetry
	case awaitsConnection:
		w.Kind, w.Connection = ForConnection, name
	case s.Awaits == action.AwaitsAnswer:
		w.Kind = ForAnswer
	case s.Awaits == action.AwaitsRun:
		w.Kind = ForRun
	}
	return w
}

// WaitingStep returns the step that a run waits for: the waiting step that wakes up
// first. It returns nil while another step is running. Loops do not count, because
// they run for as long as their rounds do.
func WaitingStep(steps iter.Seq[*Step]) *Step {
	var first *Step
	for step := range steps {
		switch {
		case step.Status == StepRunning && !step.block():
			return nil
		case step.Status == StepWaiting && (first == nil || step.wakesBefore(first)):
			first = step
		}
	}
	return first
}

// wakesBefore orders steps by the time they wake up, those without one last, and
// then by the order in which they started.
func (s *Step) wakesBefore(other *Step) bool {
	switch {
	case s.WakeAt == nil || other.WakeAt == nil:
		return s.WakeAt != nil || other.WakeAt == nil && s.Seq < other.Seq
	case s.WakeAt.Equal(*other.WakeAt):
		return s.Seq < other.Seq
	}
	return s.WakeAt.Before(*other.WakeAt)
}

// keyPrefix distinguishes an empty key from no key.
const keyPrefix = "="

// forKey returns the part of a message that names a concurrency key.
func forKey(concurrencyKey string) string {
	key := strings.TrimPrefix(concurrencyKey, keyPrefix)
	if key == "" {
		return ""
	}
	return fmt.Sprintf(" for key %q", key)
}
