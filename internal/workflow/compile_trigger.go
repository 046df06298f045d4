package workflow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/cron"
	"github.com/stepmill/stepmill/internal/duration"
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
	// DefaultRate is how many calls of a webhook a minute may have, unless the
	// trigger says otherwise.
	DefaultRate = 6_000
	maxRate     = 1_000_000
)

// PlannedTrigger is a trigger made ready: times worked out, expressions
// compiled. It has what its type needs.
type PlannedTrigger struct {
	Trigger
	Schedule *cron.Schedule // of a schedule and of a poll
	Jitter   time.Duration  // the bound of what is added to each time
	// Of a webhook.
	Verification *Verification
	DedupeKey    *expr.Template
	PerMinute    int
	// Of a poll.
	Call       *expr.Value
	List       *expr.Program
	Identity   *expr.Program // nil: every item is new
	NextCursor *expr.Program // nil: there is none

	// Secrets are the names that it refers to, sorted; Vars tells whether it reads
	// a variable.
	Secrets []string
	Vars    bool
}

// Verification is Verify made ready.
type Verification struct {
	Verify
	Secret    *expr.Template
	Username  *expr.Template
	Tolerance time.Duration
}

func (c *compiler) compileTriggers(triggers []Trigger) []PlannedTrigger {
	if len(triggers) > maxTriggers {
		c.report("/triggers", "", "must have at most %d entries", maxTriggers)
		return nil
	}
	out := make([]PlannedTrigger, len(triggers))
	seen := map[string]bool{}
	for i, trigger := range triggers {
		at := fmt.Sprintf("/triggers/%d", i)
		switch {
		case !idPattern.MatchString(trigger.ID):
			c.report(at+"/id", "", idRule)
		case seen[trigger.ID]:
			c.report(at+"/id", "", "the id %q is used by another trigger", trigger.ID)
		}
		seen[trigger.ID] = true
		out[i] = c.compileTrigger(at, trigger)
	}
	return out
}

// compileTrigger compiles one trigger, with what it refers to counted for
// itself.
func (c *compiler) compileTrigger(at string, trigger Trigger) PlannedTrigger {
	p := PlannedTrigger{Trigger: trigger}
	if !slices.Contains(TriggerTypes(), trigger.Type) {
		c.report(at+"/type", didYouMean(trigger.Type, TriggerTypes()), "unknown trigger type %q: there are %s", trigger.Type, strings.Join(TriggerTypes(), ", "))
		return p
	}
	allowed := triggerMembers(trigger.Type)
	for _, name := range trigger.members() {
		if !slices.Contains(allowed, name) {
			c.report(at+"/"+name, "", "a trigger of type %s has no %s", trigger.Type, name)
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
	p.Secrets, p.Vars = union(nil, c.secrets[secrets:]), len(c.vars) > vars || c.allVars
	return p
}

func (c *compiler) compileSchedule(at string, p *PlannedTrigger) {
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
		c.report(at+"/every", "", "a schedule has either cron or every")
		return
	case p.Cron == "" && p.Every == "":
		c.report(at+"/cron", "or add every", "is required")
		return
	case p.Every != "":
		p.Schedule = c.interval(at+"/every", p.Every)
		if p.Timezone != "" {
			c.report(at+"/timezone", "", "an interval is the same in every time zone")
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

// compileJitter bounds what is added to each time, so that not all schedules of
// the same minute fire at once. An interval begins at some moment anyway.
func (c *compiler) compileJitter(at string, p *PlannedTrigger) {
	switch {
	case p.Trigger.Jitter == "0s":
	case p.Trigger.Jitter != "":
		p.Jitter = c.length(at+"/jitter", p.Trigger.Jitter, maxJitter)
	case p.Schedule != nil && p.Schedule.Interval() == 0:
		p.Jitter = defaultJitter
	}
}

// interval compiles a plain interval.
func (c *compiler) interval(at, text string) *cron.Schedule {
	every := c.length(at, text, maxEvery)
	if every <= 0 {
		return nil
	}
	c.checkInterval(at, every)
	return cron.Every(every)
}

func (c *compiler) checkInterval(at string, every time.Duration) {
	if every < minInterval {
		c.report(at, "", "must be at least %s", duration.Format(minInterval))
	}
	if every > maxEvery {
		c.report(at, "", "must be at most %s", duration.Format(maxEvery))
	}
}

func (c *compiler) compileEvent(at string, trigger Trigger) {
	if len(trigger.Events) == 0 {
		c.report(at+"/events", "", "names at least one event")
	}
	c.checkOnce(at+"/events", trigger.Events)
	for i, name := range trigger.Events {
		if !event.Known(name) {
			c.report(fmt.Sprintf("%s/events/%d", at, i), didYouMean(name, eventNames()), "there is no event %q: there are %s", name, strings.Join(eventNames(), ", "))
		}
	}
	if trigger.Workflows != nil && len(trigger.Workflows) == 0 {
		c.report(at+"/workflows", "leave it out for all other workflows", "names at least one workflow")
	}
	if len(trigger.Workflows) > maxSubscribed {
		c.report(at+"/workflows", "leave it out for all other workflows", "must have at most %d entries", maxSubscribed)
	}
	c.checkOnce(at+"/workflows", trigger.Workflows)
	for i, id := range trigger.Workflows {
		if !uid.Valid(uid.Workflow, id) {
			c.report(fmt.Sprintf("%s/workflows/%d", at, i), "", "is not the id of a workflow")
		}
	}
}

// checkOnce reports what a list names twice.
func (c *compiler) checkOnce(at string, names []string) {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			c.report(fmt.Sprintf("%s/%d", at, i), "", "%q is named twice", name)
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

// PollAction is what a poll asks with.
const PollAction = "http.request"

func (c *compiler) compilePoll(at string, p *PlannedTrigger) {
	if p.Every == "" {
		c.report(at+"/every", "", "is required")
	} else {
		p.Schedule = c.interval(at+"/every", p.Every)
	}
	if p.Request == nil {
		c.report(at+"/request", "", "is required")
	} else {
		p.Call = c.compileCall(at+"/request", p.Request)
	}
	seen := level{response: true, cursor: true}
	if p.Items == "" {
		c.report(at+"/items", "", "is required")
	} else {
		p.List = c.kept(at+"/items", p.Items, seen)
	}
	if p.Key == "" && p.Trigger.Cursor == "" {
		c.report(at+"/key", "or add cursor", "is required: it tells new items from those seen before")
	}
	if p.Key != "" {
		one := seen
		one.item, one.index = true, true
		p.Identity = c.kept(at+"/key", p.Key, one)
	}
	if p.Trigger.Cursor != "" {
		p.NextCursor = c.kept(at+"/cursor", p.Trigger.Cursor, seen)
	}
}

// kept is program for what is kept in the open.
func (c *compiler) kept(at, source string, lv level) *expr.Program {
	program := c.bare(at, source)
	if program == nil {
		return nil
	}
	refs := program.Refs()
	for range refs.Secrets {
		c.report(at, "", "a secret cannot be used here: what comes out is kept in the open")
	}
	refs.Secrets = nil
	c.checkRefs(at, c.refuseSteps(at, refs), lv)
	return program
}

// refuseSteps reports steps and returns the rest of the references.
func (c *compiler) refuseSteps(at string, refs expr.Refs) expr.Refs {
	if len(refs.Steps) > 0 || refs.AllSteps {
		c.report(at, "", "no step has run when a trigger fires")
	}
	refs.Steps, refs.AllSteps = nil, false
	return refs
}

// compileCall compiles the request of a poll: what http.request takes.
func (c *compiler) compileCall(at string, raw []byte) *expr.Value {
	input, err := decodeWith(raw)
	if err != nil {
		c.report(at, "", "must be an object")
		return nil
	}
	entry, _ := c.catalog.Find(PollAction)
	value, err := expr.CompileValue(input, escapes(entry.Spec.URLs))
	if err != nil {
		c.reportExpr(at, err)
	} else {
		c.checkRefs(at, c.refuseSteps(at, value.Refs()), level{cursor: true})
	}
	for _, problem := range c.catalog.Check(PollAction, input, templated(input)) {
		c.report(at+problem.Pointer, problem.Hint, "%s", problem.Message)
	}
	return value
}
