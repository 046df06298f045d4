// Package approval implements the action flow.approval: the run waits for an
// answer from a person or any other authorized caller. It can send a
// notification when the wait begins, and reminders until the step is answered.
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
)

const (
	defaultTimeout = 7 * 24 * time.Hour
	maxTimeout     = 366 * 24 * time.Hour
	// minReminderInterval is the minimum time between reminders.
	minReminderInterval = time.Minute
	// TimedOut is the code of a step that was not answered in time.
	TimedOut = "approval_timed_out"
)

type approval struct{ notify action.Action }

// Entry declares the action. It sends notifications with the action notify,
// which takes url, headers and body.
func Entry(notify action.Action) action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "flow.approval",
			Title:    "Ask for approval",
			Keywords: []string{"approve", "reject", "confirm", "human", "review", "manual"},
			Summary: "Waits until someone approves or rejects, optionally with a comment and data. A rejection is not a failure: " +
				"later steps check `approved`. The wait survives restarts.",
			Pure:       true,
			Effects:    []string{"notify"},
			Stores:     true,
			Guarded:    []string{"notify"},
			Answerable: true,
			URLs:       []string{"/notify/url"},
			Input:      inputSchema,
			Output:     outputSchema,
			Check:      check,
			Codes:      []action.Code{{Name: TimedOut, Meaning: "The step was not answered in time, and on_timeout is fail."}},
			Examples:   examples,
		},
		Action: approval{notify},
	}
}

func check(with map[string]any) []action.Problem {
	var problems []action.Problem
	if _, err := timeout(with); err != nil {
		problems = append(problems, action.Problem{Pointer: "/timeout", Message: err.Error()})
	}
	if _, err := reminderInterval(with); err != nil {
		problems = append(problems, action.Problem{Pointer: "/remind_every", Message: err.Error()})
	}
	if with["remind_every"] != nil && with["notify"] == nil {
		problems = append(problems, action.Problem{Pointer: "/remind_every", Message: "requires notify, which is sent again as the reminder"})
	}
	if notify, ok := with["notify"].(map[string]any); ok {
		text, _ := notify["url"].(string)
		if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			problems = append(problems, action.Problem{Pointer: "/notify/url", Message: "must be an absolute http or https URL"})
		}
	}
	return problems
}

func timeout(with map[string]any) (time.Duration, error) {
	text, ok := with["timeout"].(string)
	if !ok {
		return defaultTimeout, nil
	}
	d, err := clock.ParseDuration(text)
	if err == nil && d > maxTimeout {
		err = fmt.Errorf("must be at most 366 days")
	}
	return d, err
}

// reminderInterval returns the time between reminders, or zero for no reminders.
func reminderInterval(with map[string]any) (time.Duration, error) {
	text, ok := with["remind_every"].(string)
	if !ok {
		return 0, nil
	}
	d, err := clock.ParseDuration(text)
	if err == nil && d < minReminderInterval {
		err = fmt.Errorf("must be at least %s", clock.FormatDuration(minReminderInterval))
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
	length, err := timeout(req.Input)
	if err != nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: "timeout: " + err.Error()}
	}
	every, err := reminderInterval(req.Input)
	if err != nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: "remind_every: " + err.Error()}
	}
	left := length
	if !req.WokenAt.IsZero() {
		if left = req.Left; left <= 0 {
			return timeOut(req)
		}
	}
	if err := a.send(ctx, req); err != nil {
		return action.Result{}, err
	}
	return wait(req, length, left, every), nil
}

func timeOut(req action.Request) (action.Result, error) {
	switch req.Input["on_timeout"] {
	case "continue", "approve":
		return action.Result{Output: map[string]any{
			"approved": req.Input["on_timeout"] == "approve", "by": nil, "comment": nil, "data": nil,
		}}, nil
	}
	return action.Result{}, &action.Failure{Code: TimedOut, Message: "not answered by " + clock.Format(clock.Wall(req.WokenAt))}
}

// send sends the notification or a reminder. The notification must succeed,
// because otherwise the step might never be answered. A failed reminder is only
// logged.
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
		// Each reminder has its own key, which is the same for all its attempts.
		call.IdempotencyKey += "/" + clock.Format(req.WokenAt)
	}
	_, err := a.notify.Run(ctx, call)
	if failure, ok := errors.AsType[*action.Failure](err); ok && reminder {
		req.Log(action.Warn, "the reminder could not be sent: "+failure.Message)
		return nil
	}
	return err
}

// wait waits for the rest of the timeout or until the next reminder, whichever is first.
// Missed reminders are skipped.
func wait(req action.Request, length, left, every time.Duration) action.Result {
	pause := left
	if every > 0 {
		pause = min(left, every-(length-left)%every)
	}
	return action.Result{Wait: &action.Wait{
		For: pause, Longest: left, Awaits: action.AwaitsAnswer,
		Reason: "waits for approval until " + clock.Format(req.Now.Add(left)),
	}}
}
