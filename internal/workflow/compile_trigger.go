package workflow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cron"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/uid"
)

// Bounds of triggers.
const (
	maxTriggers   = 50
	minInterval   = 10 * time.Second
	defaultJitter = 5 * time.Second
	maxJitter     = time.Hour
	maxSubscribed = 100
	// DefaultRate is how many calls per minute a webhook trigger accepts unless it
	// sets rate.
	DefaultRate = 6_000
	maxRate     = 1_000_000
)

// CompiledTrigger is a trigger with its schedule and expressions compiled. Only
// the fields of its type are set.
type CompiledTrigger struct {
	Trigger
	Schedule *cron.Schedule // schedule and poll
	Jitter   time.Duration  // upper bound of the delay added to each time
	// Webhook.
	Verification *Verification
	DedupeKey    *expr.Template
	PerMinute    int
	// Poll.
	Call       *expr.Value
	List       *expr.Program
	Identity   *expr.Program // nil: every item is new
	NextCursor *expr.Program // nil: no cursor

	// Secrets are the sorted names of the secrets that it refers to; Vars reports
	// whether it reads a variable.
	Secrets []string
	Vars    bool
}

// Verification is a compiled Verify.
type Verification struct {
	Verify
	Secret    *expr.Template
	Username  *expr.Template
	Tolerance time.Duration
}

func (c *compiler) compileTriggers(triggers []Trigger) []CompiledTrigger {
	if len(triggers) > maxTriggers {
		c.report("/triggers", "", "must have at most %d entries", maxTriggers)
		return nil
	}
	out := make([]CompiledTrigger, len(triggers))
	seen := map[string]bool{}
	for i, trigger := range triggers {
		at := fmt.Sprintf("/triggers/%d", i)
		switch {
		case !idPattern.MatchString(trigger.ID):
			c.report(at+"/id", "", idRule)
		case seen[trigger.ID]:
			c.report(at+"/id", "", "the id %q is already used by another trigger", trigger.ID)
		}
		seen[trigger.ID] = true
		out[i] = c.compileTrigger(at, trigger)
	}
	return out
}

// compileTrigger compiles one trigger and records the secrets and variables that
// this trigger refers to.
func (c *compiler) compileTrigger(at string, trigger Trigger) CompiledTrigger {
	p := CompiledTrigger{Trigger: trigger}
	if !slices.Contains(TriggerTypes(), trigger.Type) {
		c.report(at+"/type", didYouMean(trigger.Type, TriggerTypes()), "unknown trigger type %q; the types are %s", trigger.Type, strings.Join(TriggerTypes(), ", "))
		return p
	}
	allowed := triggerMembers(trigger.Type)
	for _, name := range trigger.members() {
		if !slices.Contains(allowed, name) {
			c.report(at+"/"+name, "", "a trigger of type %s cannot have %s", trigger.Type, name)
		}
	}
	secrets, vars := len(c.secrets), len(c.vars)
	c.allVars = false
	switch trigger.Type {
	case ScheduleTrigger:
		c.compileSchedule(at, &p)
	case WebhookTrigger:
		c.compileWebhook(at, &p)
	case EventTrigger:
		c.compileEvent(at, trigger)
	case PollTrigger:
		c.compilePoll(at, &p)
	}
	p.Secrets, p.Vars = mergeNames(nil, c.secrets[secrets:]), len(c.vars) > vars || c.allVars
	return p
}

func (c *compiler) compileSchedule(at string, p *CompiledTrigger) {
	zone, err := cron.Zone(p.Timezone)
	if err != nil {
		c.report(at+"/timezone", "", "%s", err)
		zone = time.UTC
	}
	if p.Missed != "" && p.Missed != Skip && p.Missed != Latest {
		c.report(at+"/missed", "", "must be skip or latest")
	}
	switch {
	case p.Cron != "" && p.Every != "":
		c.report(at+"/every", "", "a schedule has either cron or every, not both")
		return
	case p.Cron == "" && p.Every == "":
		c.report(at+"/cron", "or add every", "is required")
		return
	case p.Every != "":
		p.Schedule = c.compileInterval(at+"/every", p.Every)
		if p.Timezone != "" {
			c.report(at+"/timezone", "remove it, or use cron", "a time zone has no effect on an interval")
		}
	default:
		if p.Schedule, err = cron.Parse(p.Cron, zone); err != nil {
			c.report(at+"/cron", "", "%s", err)
			return
		}
		if every := p.Schedule.Interval(); every > 0 {
			c.checkInterval(at+"/cron", every)
		}
	}
	c.compileJitter(at, p)
}

// compileJitter sets the jitter that keeps schedules of the same minute from
// firing all at once. An interval has none by default, because its start time is
// arbitrary anyway.
func (c *compiler) compileJitter(at string, p *CompiledTrigger) {
	switch {
	case p.Trigger.Jitter == "0s":
	case p.Trigger.Jitter != "":
		p.Jitter = c.parseDuration(at+"/jitter", p.Trigger.Jitter, maxJitter)
	case p.Schedule != nil && p.Schedule.Interval() == 0:
		p.Jitter = defaultJitter
	}
}

// compileInterval compiles an interval.
func (c *compiler) compileInterval(at, text string) *cron.Schedule {
	every := c.parseDuration(at, text, maxEvery)
	if every <= 0 {
		return nil
	}
	c.checkInterval(at, every)
	return cron.Every(every)
}

func (c *compiler) checkInterval(at string, every time.Duration) {
	if every < minInterval {
		c.report(at, "", "must be at least %s", clock.FormatDuration(minInterval))
	}
	if every > maxEvery {
		c.report(at, "", "must be at most %s", clock.FormatDuration(maxEvery))
	}
}

func (c *compiler) compileEvent(at string, trigger Trigger) {
	if len(trigger.Events) == 0 {
		c.report(at+"/events", "", "must name at least one event")
	}
	c.checkUnique(at+"/events", trigger.Events)
	for i, name := range trigger.Events {
		if !event.Known(name) {
			c.report(fmt.Sprintf("%s/events/%d", at, i), didYouMean(name, eventNames()), "unknown event %q; the events are %s", name, strings.Join(eventNames(), ", "))
		}
	}
	if trigger.Workflows != nil && len(trigger.Workflows) == 0 {
		c.report(at+"/workflows", "omit it to subscribe to all other workflows", "must name at least one workflow")
	}
	if len(trigger.Workflows) > maxSubscribed {
		c.report(at+"/workflows", "omit it to subscribe to all other workflows", "must have at most %d entries", maxSubscribed)
	}
	c.checkUnique(at+"/workflows", trigger.Workflows)
	for i, id := range trigger.Workflows {
		if !uid.Valid(uid.Workflow, id) {
			c.report(fmt.Sprintf("%s/workflows/%d", at, i), "", "is not a workflow id")
		}
	}
}

// checkUnique reports names that a list contains more than once.
func (c *compiler) checkUnique(at string, names []string) {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			c.report(fmt.Sprintf("%s/%d", at, i), "", "%q is listed twice", name)
		}
	}
}

func eventNames() []string {
	var names []string
	for _, kind := range event.Types() {
		names = append(names, string(kind))
	}
	return names
}

// PollAction is the action that a poll sends its request with.
const PollAction = "http.request"

func (c *compiler) compilePoll(at string, p *CompiledTrigger) {
	if p.Every == "" {
		c.report(at+"/every", "", "is required")
	} else {
		p.Schedule = c.compileInterval(at+"/every", p.Every)
	}
	if p.Request == nil {
		c.report(at+"/request", "", "is required")
	} else {
		p.Call = c.compilePollRequest(at+"/request", p.Request)
	}
	response := scope{response: true, cursor: true}
	if p.Items == "" {
		c.report(at+"/items", "", "is required")
	} else {
		p.List = c.compileStoredExpr(at+"/items", p.Items, response)
	}
	if p.Key == "" && p.Trigger.Cursor == "" {
		c.report(at+"/key", "or add cursor", "is required to tell new items from those already seen")
	}
	if p.Key != "" {
		item := response
		item.item, item.index = true, true
		p.Identity = c.compileStoredExpr(at+"/key", p.Key, item)
	}
	if p.Trigger.Cursor != "" {
		p.NextCursor = c.compileStoredExpr(at+"/cursor", p.Trigger.Cursor, response)
	}
}

// compileStoredExpr compiles an expression whose result is stored in plain text.
func (c *compiler) compileStoredExpr(at, source string, sc scope) *expr.Program {
	program := c.compileBare(at, source)
	if program == nil {
		return nil
	}
	refs := program.Refs()
	for range refs.Secrets {
		c.report(at, "", "a secret cannot be used here: the result is stored in plain text")
	}
	refs.Secrets = nil
	c.checkRefs(at, c.rejectSteps(at, refs), sc)
	return program
}

// rejectSteps reports references to steps and returns the other references.
func (c *compiler) rejectSteps(at string, refs expr.Refs) expr.Refs {
	if len(refs.Steps) > 0 || refs.AllSteps {
		c.report(at, "", "steps cannot be used here: no step has run when a trigger fires")
	}
	refs.Steps, refs.AllSteps = nil, false
	return refs
}

// compilePollRequest compiles the request of a poll: the input of PollAction.
func (c *compiler) compilePollRequest(at string, raw []byte) *expr.Value {
	input, err := decodeInput(raw)
	if err != nil {
		c.report(at, "", "must be an object")
		return nil
	}
	entry, _ := c.catalog.Find(PollAction)
	value, err := expr.CompileValue(input, escapes(entry.Spec.URLs))
	if err != nil {
		c.reportExpr(at, err)
	} else {
		c.checkRefs(at, c.rejectSteps(at, value.Refs()), scope{cursor: true})
	}
	for _, problem := range c.catalog.Check(PollAction, input, templated(input)) {
		c.report(at+problem.Pointer, problem.Hint, "%s", problem.Message)
	}
	return value
}
