// Package schedule declares the trigger type schedule, which fires at the times of a
// cron expression or at an interval.
package schedule

import (
	"encoding/json"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cron"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

const (
	defaultJitter = 5 * time.Second
	maxJitter     = time.Hour
)

// Type declares the type.
func Type() trigger.Type {
	return trigger.Type{
		Format: workflow.TriggerType{
			Name: workflow.ScheduleTrigger, Summary: "A cron expression or an interval.",
			Members: members, Compile: compile,
			Rule: schema{"oneOf": []schema{{"required": []string{"cron"}}, {"required": []string{"every"}}}},
		},
		First:  first,
		Firer:  func(d trigger.Deps) trigger.Firer { return NewScheduler(d.Store, d.Programs, d.Runs, d.Log) },
		Sample: func(_ string, _ workflow.Trigger, now time.Time) (json.RawMessage, error) { return payloadAt(now) },
	}
}

// Config is a compiled schedule.
type Config struct {
	Schedule *cron.Schedule
	Jitter   time.Duration // upper bound of the delay added to each time
	Missed   workflow.Missed
}

func compile(c *workflow.TriggerCompiler, t workflow.Trigger) any {
	config := &Config{Missed: t.Missed}
	zone, err := cron.Zone(t.Timezone)
	if err != nil {
		c.Report("/timezone", "", "%s", err)
		zone = time.UTC
	}
	if t.Missed != "" && t.Missed != workflow.Skip && t.Missed != workflow.Latest {
		c.Report("/missed", "", "must be skip or latest")
	}
	switch {
	case t.Cron != "" && t.Every != "":
		c.Report("/every", "", "a schedule has either cron or every, not both")
		return config
	case t.Cron == "" && t.Every == "":
		c.Report("/cron", "or add every", "is required")
		return config
	case t.Every != "":
		config.Schedule = c.Interval("/every", t.Every)
		if t.Timezone != "" {
			c.Report("/timezone", "remove it, or use cron", "a time zone has no effect on an interval")
		}
	default:
		if config.Schedule, err = cron.Parse(t.Cron, zone); err != nil {
			c.Report("/cron", "", "%s", err)
			return config
		}
		if every := config.Schedule.Interval(); every > 0 {
			c.CheckInterval("/cron", every)
		}
	}
	config.compileJitter(c, t)
	return config
}

// compileJitter sets the jitter that keeps schedules of the same minute from
// firing all at once. An interval has none by default, because its start time is
// arbitrary anyway.
func (config *Config) compileJitter(c *workflow.TriggerCompiler, t workflow.Trigger) {
	switch {
	case t.Jitter == "0s":
	case t.Jitter != "":
		config.Jitter = c.Duration("/jitter", t.Jitter, maxJitter)
	case config.Schedule != nil && config.Schedule.Interval() == 0:
		config.Jitter = defaultJitter
	}
}

func first(workflowID string, t workflow.CompiledTrigger, now time.Time) time.Time {
	config := t.Config.(*Config)
	return config.Schedule.Next(now).Add(jitter(workflowID, t.ID, config))
}

type schema = map[string]any

func members(*action.Catalog) schema {
	return schema{
		"cron": schema{
			"title": "Cron", "description": "Minute, hour, day of the month, month and day of the week; or @hourly, @daily, @weekly, @monthly, @yearly, @every 15m.",
			"type": "string", "minLength": 1, "examples": []string{"0 3 * * *", "*/15 8-18 * * MON-FRI", "@daily"},
		},
		"every": workflow.IntervalSchema(),
		"timezone": schema{
			"title": "Time zone", "description": "The IANA name of the time zone that cron uses. Default UTC.",
			"type": "string", "minLength": 1, "examples": []string{"Europe/Paris", "America/New_York"},
		},
		"missed": schema{
			"title": "Missed", "description": "What happens to scheduled times that passed while the service was stopped.",
			"type": "string", "enum": []workflow.Missed{workflow.Skip, workflow.Latest}, "default": workflow.Skip,
			"enumDescriptions": []string{"They are skipped.", "The trigger fires once, for the latest of them."},
		},
		"jitter": workflow.DurationSchema("Jitter", "Delays each time by up to this; for one trigger the delay is always the same. Default "+clock.FormatDuration(defaultJitter)+
			" for cron and none for an interval, at most "+clock.FormatDuration(maxJitter)+". 0s turns it off."),
	}
}
