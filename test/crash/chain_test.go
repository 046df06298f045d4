package crash_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// chain models a workflow whose steps add to, multiply or pass on a number from the
// payload, or wait. The output of every step is known in advance.
type chain []link

type link struct {
	op string // add, times or wait
	by int64  // a number, or milliseconds
}

// step is a step as the API accepts and returns it.
type step struct {
	ID   string         `json:"id"`
	Uses string         `json:"uses"`
	With map[string]any `json:"with"`
}

func stepID(i int) string { return fmt.Sprintf("s%d", i+1) }

// steps returns the steps of a workflow for the chain.
func (c chain) steps() []step {
	value := "trigger.payload.n"
	steps := make([]step, len(c))
	for i, l := range c {
		steps[i] = step{ID: stepID(i), Uses: "data.set"}
		switch l.op {
		case "wait":
			steps[i].Uses, steps[i].With = "flow.wait", map[string]any{"for": fmt.Sprintf("%dms", l.by)}
			continue
		case "add":
			value = fmt.Sprintf("%s + %d", value, l.by)
		case "times":
			value = fmt.Sprintf("%s * %d", value, l.by)
		}
		steps[i].With = map[string]any{"values": map[string]any{"n": "${{ " + value + " }}"}}
		value = "steps." + stepID(i) + ".output.n"
	}
	return steps
}

func (c chain) waits() bool {
	return slices.ContainsFunc(c, func(l link) bool { return l.op == "wait" })
}

// outputs returns the outputs of the steps for n. A wait has none.
func (c chain) outputs(n int64) []*int64 {
	out := make([]*int64, len(c))
	for i, l := range c {
		switch l.op {
		case "add":
			n += l.by
		case "times":
			n *= l.by
		case "wait":
			continue
		}
		value := n
		out[i] = &value
	}
	return out
}

// randomChain returns a chain of two to five steps. Half of the chains have a wait.
func randomChain(r *rand.Rand) chain {
	c := chain{{"add", r.Int64N(100)}}
	for range 1 + r.IntN(3) {
		c = append(c, link{[]string{"add", "times"}[r.IntN(2)], 1 + r.Int64N(9)})
	}
	if r.IntN(2) == 0 {
		at := r.IntN(len(c))
		c = append(c[:at], append(chain{{"wait", 50 + r.Int64N(451)}}, c[at:]...)...)
	}
	return c
}

// violations returns where a run deviates from the chain.
func (c chain) violations(r runBody) []string {
	var out []string
	report := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("INVARIANT: run %s (%s): ", r.ID, r.Status)+fmt.Sprintf(format, args...))
	}
	want := c.outputs(r.Trigger.Payload.N)
	ended := r.Status != running
	if ended != (r.FinishedAt != nil) {
		report("finished_at is %v", r.FinishedAt)
	}
	if r.Status != running && r.Status != succeeded && r.Status != cancelled {
		report("want succeeded or cancelled: %+v", r.Error)
	}
	if r.Status == succeeded && len(r.Steps) != len(c) {
		report("it has %d steps, want %d", len(r.Steps), len(c))
	}
	for i, s := range r.Steps {
		if i >= len(c) || s.StepID != stepID(i) {
			report("step %d is %s", i, s.StepID)
			return out
		}
		if reason := c[i].violation(s, want[i], ended); reason != "" {
			report("step %s (%s): %s", s.StepID, s.Status, reason)
		}
		// A cancel may have read the clock before the last step did.
		if r.Status == succeeded && oneClock() && r.FinishedAt != nil && s.FinishedAt != nil && s.FinishedAt.After(*r.FinishedAt) {
			report("step %s ended after the run", s.StepID)
		}
		if i+1 < len(r.Steps) && s.Status != succeeded {
			report("step %s is %s, but the next one started", s.StepID, s.Status)
		}
		if i > 0 && oneClock() && r.Steps[i-1].FinishedAt != nil && s.StartedAt.Before(*r.Steps[i-1].FinishedAt) {
			report("step %s started before the previous one had finished", s.StepID)
		}
	}
	return out
}

// oneClock reports whether all times come from the same clock. On PostgreSQL each node
// estimates the clock of the database, and two estimates can differ by a round trip.
func oneClock() bool { return !harness.OnPostgres() }

func (l link) violation(s stepBody, want *int64, ended bool) string {
	var wrong []string
	if s.Attempt != 1 {
		wrong = append(wrong, fmt.Sprintf("attempt %d", s.Attempt))
	}
	switch {
	case ended && s.Status != succeeded && s.Status != cancelled:
		wrong = append(wrong, "has not ended although the run has")
	case ended && s.FinishedAt == nil:
		wrong = append(wrong, "has no finished_at")
	}
	if s.Status != succeeded {
		return strings.Join(wrong, ", ")
	}
	switch {
	case want == nil && s.Output.WaitedUntil == nil:
		wrong = append(wrong, "has no waited_until")
	case want == nil && s.FinishedAt.Before(*s.Output.WaitedUntil):
		wrong = append(wrong, "ended before its time")
	case want == nil && s.Output.WaitedUntil.Sub(s.StartedAt).Abs() < time.Duration(l.by-2)*time.Millisecond:
		wrong = append(wrong, fmt.Sprintf("waited from %v to %v only", s.StartedAt, s.Output.WaitedUntil))
	case want != nil && (s.Output.N == nil || *s.Output.N != *want):
		wrong = append(wrong, fmt.Sprintf("output is %v, want %d", s.Output.N, *want))
	}
	return strings.Join(wrong, ", ")
}
