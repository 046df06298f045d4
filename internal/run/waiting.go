package run

import (
	"fmt"
	"strings"
	"time"
)

// Waiting says what a run waits for.
type Waiting struct {
	Reason string
	StepID string
	Until  *time.Time
}

// WaitingFor tells what holds the run up: its place among others, or else the
// step that wakes first, provided that nothing runs. It is nil for a run that
// works or is finished.
func (d Detail) WaitingFor() *Waiting {
	switch {
	case d.Status != Running:
		return nil
	case d.HeldBack:
		return &Waiting{Reason: "waits until another run of this workflow" + withKey(d.ShareKey) + " has ended"}
	case d.Queued && d.Crashes >= crashesToIsolate:
		return &Waiting{Reason: fmt.Sprintf("waits to be executed by itself, because the service has stopped abruptly %d times while it was under way", d.Crashes)}
	case d.Queued:
		return &Waiting{Reason: "waits in the queue: as many runs as may be are under way"}
	}
	return d.waitingStep()
}

func (d Detail) waitingStep() *Waiting {
	var first *Step
	for i, step := range d.Steps {
		switch {
		case step.Status == StepRunning && !step.block():
			return nil
		case step.Status != StepWaiting:
		case first == nil || step.WakeAt != nil && (first.WakeAt == nil || step.WakeAt.Before(*first.WakeAt)):
			first = &d.Steps[i]
		}
	}
	if first == nil {
		return nil
	}
	return &Waiting{Reason: first.Reason, StepID: first.Path, Until: first.Until()}
}

// keyed marks a key, so that the empty one is a key too.
const keyed = "="

func withKey(shareKey string) string {
	key := strings.TrimPrefix(shareKey, keyed)
	if key == "" {
		return ""
	}
	return fmt.Sprintf(" with the concurrency key %q", key)
}
