// Package approval is the action flow.approval: the run waits for the answer of
// a person, or of any caller who may give one. It can send word that it waits,
// and again while nobody answers.
package approval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/duration"
)

const (
	defaultTimeout = 7 * 24 * time.Hour
	longest        = 366 * 24 * time.Hour
	// often bounds how soon word is sent again.
	often = time.Minute
	// TimedOut is the code of a step that nobody answered in time.
	TimedOut = "approval_timed_out"
)

// approval asks; notify sends word.
type approval struct{ notify action.Action }

// Entry declares the action. Word is sent with the action notify, which takes
// url, headers and body.
func Entry(notify action.Action) action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:  "flow.approval",
			Title: "Ask for approval",
			Summary: "Waits until somebody approves or rejects, with a comment and data if they like. A rejection is no failure: " +
				"later steps look at `approved`. The wait survives restarts.",
			Pure:       true,
			Effects:    []string{"notify"},
			Stores:     true,
			Guarded:    []string{"notify"},
			Answerable: true,
			URLs:       []string{"/notify/url"},
			Input:      inputSchema,
			Output:     outputSchema,
			Check:      check,
			Codes:      []action.Code{{Name: TimedOut, Meaning: "Nobody answered in time, and on_timeout is not given."}},
			Examples:   examples,
		},
		Action: approval{notify},
	}
}

func check(with map[string]any) []action.Problem {
	var problems []action.Problem
	if _, err := limit(with); err != nil {
		problems = append(problems, action.Problem{Pointer: "/timeout", Message: err.Error()})
	}
	if _, err := interval(with); err != nil {
		problems = append(problems, action.Problem{Pointer: "/remind_every", Message: err.Error()})
	}
	if with["remind_every"] != nil && with["notify"] == nil {
		problems = append(problems, action.Problem{Pointer: "/remind_every", Message: "needs notify: there is nobody to remind"})
	}
	if notify, ok := with["notify"].(map[string]any); ok {
		text, _ := notify["url"].(string)
		if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			problems = append(problems, action.Problem{Pointer: "/notify/url", Message: "must be an absolute http or https URL"})
		}
	}
	return problems
}

func limit(with map[string]any) (time.Duration, error) {
	text, ok := with["timeout"].(string)
	if !ok {
		return defaultTimeout, nil
	}
	d, err := duration.Parse(text)
	if err == nil && d > longest {
		err = fmt.Errorf("must be at most 366 days")
	}
	return d, err
}

// interval is how long to wait until word is sent again; zero: not at all.
func interval(with map[string]any) (time.Duration, error) {
	text, ok := with["remind_every"].(string)
	if !ok {
		return 0, nil
	}
	d, err := duration.Parse(text)
	if err == nil && d < often {
		err = fmt.Errorf("must be at least %s", duration.Format(often))
	}
	return d, err
}

// Run implements action.Action.
func (a approval) Run(ctx context.Context, req action.Request) (action.Result, error) {
	if req.Answer != nil {
		return action.Result{Output: map[string]any{
			"approved": req.Answer["approved"], "by": req.Answer["by"], "comment": req.Answer["comment"], "data": req.Answer["data"],
		}}, nil
	}
	length, err := limit(req.Input)
	if err != nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: "timeout: " + err.Error()}
	}
	every, err := interval(req.Input)
	if err != nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: "remind_every: " + err.Error()}
	}
	deadline := req.Began.Add(length)
	if !req.WokenAt.IsZero() && !req.Now.Before(deadline.Truncate(time.Microsecond)) {
		return expire(req, deadline)
	}
	if err := a.send(ctx, req); err != nil {
		return action.Result{}, err
	}
	return wait(req, deadline, every), nil
}

// expire ends a wait without an answer.
func expire(req action.Request, deadline time.Time) (action.Result, error) {
	switch req.Input["on_timeout"] {
	case "continue", "approve":
		return action.Result{Output: map[string]any{
			"approved": req.Input["on_timeout"] == "approve", "by": nil, "comment": nil, "data": nil,
		}}, nil
	}
	return action.Result{}, &action.Failure{Code: TimedOut, Message: "nobody answered until " + clock.Format(deadline)}
}

// send sends word. The first time that has to succeed: nobody else would know. A
// reminder that does not arrive changes nothing.
func (a approval) send(ctx context.Context, req action.Request) error {
	input, ok := req.Input["notify"].(map[string]any)
	if !ok {
		return nil
	}
	reminder := !req.WokenAt.IsZero()
	call := req
	call.Input = map[string]any{"method": "POST"}
	maps.Copy(call.Input, input)
	if reminder {
		// Each reminder is one of its own, over all its attempts.
		call.IdempotencyKey += "/" + clock.Format(req.WokenAt)
	}
	_, err := a.notify.Run(ctx, call)
	if failure, ok := errors.AsType[*action.Failure](err); ok && reminder {
		req.Log(action.Warn, "the reminder could not be sent: "+failure.Message)
		return nil
	}
	return err
}

// wait goes on to the deadline, or to the next reminder before it. Those that
// were missed are not made up for.
func wait(req action.Request, deadline time.Time, every time.Duration) action.Result {
	until := deadline
	if every > 0 {
		if next := req.Began.Add(req.Now.Sub(req.Began).Truncate(every) + every); next.Before(deadline) {
			until = next
		}
	}
	return action.Result{Wait: &action.Wait{
		Until: until, Deadline: deadline, Awaits: action.AwaitsAnswer,
		Reason: "waits for somebody to approve or reject, until " + clock.Format(deadline),
	}}
}
