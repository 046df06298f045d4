// Package wait implements the action flow.wait, which suspends the run for a
// duration or until a time. A waiting run is a row in the store and uses no
// memory.
package wait

import (
	"context"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
)

const maxWait = 366 * 24 * time.Hour

// Entry declares the action.
func Entry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "flow.wait",
			Title:    "Wait",
			Keywords: []string{"delay", "sleep", "pause", "timer"},
			Summary:  "Waits for a duration or until a time, at most 366 days. The wait survives restarts.",
			Pure:     true,
			Input: `{
				"type": "object",
				"additionalProperties": false,
				"properties": {
					"for": {"type": "string", "description": "How long to wait, such as 90s, 2h or 3d."},
					"until": {"type": "string", "description": "The time to wait for, in RFC 3339, such as 2026-11-15T09:30:00Z. A time in the past does not wait."}
				}
			}`,
			Output: `{
				"type": "object",
				"properties": {"waited_until": {"type": "string", "format": "date-time", "description": "The time that the step waited for."}}
			}`,
			ExactlyOne: []string{"for", "until"},
			Check:      check,
			Limits: []string{
				"Set exactly one of the two fields.",
				"A wait lasts at most 366 days. A time in the past does not wait.",
				"The length of a wait with \"for\" is measured, so setting the clock does not change it. A wait with \"until\" ends when the clock shows that time.",
				"A waiting run is a row in the database and uses no memory. If the server is down when the wait ends, the run resumes when the server is back.",
			},
			Examples: []action.Example{{
				Title:  "Until a time in the past",
				With:   `{"until": "2020-01-01T00:00:00Z"}`,
				Output: `{"waited_until": "2020-01-01T00:00:00.000Z"}`,
			}},
		},
		Action: action.Func(run),
	}
}

func check(with map[string]any) []action.Problem {
	length, hasFor := with["for"].(string)
	moment, hasUntil := with["until"].(string)
	if hasFor == hasUntil {
		return []action.Problem{{Message: "needs either \"for\" or \"until\""}}
	}
	if hasFor {
		if _, err := parseFor(length); err != nil {
			return []action.Problem{{Pointer: "/for", Message: err.Error()}}
		}
		return nil
	}
	if _, err := time.Parse(time.RFC3339, moment); err != nil {
		return []action.Problem{{Pointer: "/until", Message: "must be a time such as 2026-11-15T09:30:00Z"}}
	}
	return nil
}

func parseFor(text string) (time.Duration, error) {
	d, err := clock.ParseDuration(text)
	if err != nil {
		return 0, err
	}
	if d > maxWait {
		return 0, fmt.Errorf("must be at most 366 days")
	}
	return d, nil
}

func run(_ context.Context, req action.Request) (action.Result, error) {
	text, ok := req.Input["for"].(string)
	if !ok {
		return waitUntil(req)
	}
	if !req.WokenAt.IsZero() {
		return waited(clock.Wall(req.WokenAt)), nil
	}
	length, err := parseFor(text)
	if err != nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: err.Error()}
	}
	return action.Result{Wait: &action.Wait{For: length, Reason: waits(req.Now.Add(length))}}, nil
}

// waitUntil waits until the clock shows a time. It also looks at the clock when it was
// woken, because the clock may have been set.
func waitUntil(req action.Request) (action.Result, error) {
	text, _ := req.Input["until"].(string)
	until, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		err = fmt.Errorf("until: %q is not a time such as 2026-11-15T09:30:00Z", text)
	case req.WokenAt.IsZero() && until.Sub(req.Now) > maxWait:
		err = fmt.Errorf("until: must be at most 366 days away")
	case !until.After(req.Now):
		return waited(until), nil
	default:
		return action.Result{Wait: &action.Wait{Until: until.UTC(), Awaits: action.AwaitsTime, Reason: waits(until)}}, nil
	}
	return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: err.Error()}
}

func waits(until time.Time) string { return "waits until " + clock.Format(until) }

func waited(until time.Time) action.Result {
	return action.Result{Output: map[string]any{"waited_until": clock.Format(until)}}
}
