package workflow

import (
	"fmt"
	"slices"
	"strings"
)

const maxTriggers = 50

// CompiledTrigger is a trigger that was compiled by its type.
type CompiledTrigger struct {
	Trigger
	// Config is the result of TriggerType.Compile.
	Config any
	// Secrets are the sorted names of the secrets that it refers to; Vars reports
	// whether it reads a variable.
	Secrets []string
	Vars    bool
}

func (c *compiler) compileTriggers(triggers []Trigger) []CompiledTrigger {
	if len(triggers) > maxTriggers {
		c.report("/triggers", "", "must have at most %d entries", maxTriggers)
		return nil
	}
	out := make([]CompiledTrigger, 0, len(triggers))
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
		problems := len(c.problems)
		compiled := c.compileTrigger(at, trigger)
		if _, changed := c.changed(trigger.Type, problems); !changed {
			out = append(out, compiled)
		}
	}
	return out
}

// compileTrigger compiles one trigger and records the secrets and variables that
// this trigger refers to.
func (c *compiler) compileTrigger(at string, trigger Trigger) CompiledTrigger {
	p := CompiledTrigger{Trigger: trigger}
	kind, known := c.types.find(trigger.Type)
	if !known {
		names := c.types.Names()
		hint := didYouMean(trigger.Type, slices.Concat(names, c.types.serviceNames()))
		c.report(at+"/type", hint, "unknown trigger type %q; the types are %s, and those of services, such as gmail.new_message", trigger.Type, strings.Join(names, ", "))
		return p
	}
	allowed := kind.members(c.catalog)
	for _, name := range trigger.members() {
		if _, ok := allowed[name]; !ok && (name != "with" || kind.Input == nil) {
			c.report(at+"/"+name, "", "a trigger of type %s cannot have %s", trigger.Type, name)
		}
	}
	secrets, vars := len(c.secrets), len(c.vars)
	c.allVars = false
	if kind.Compile != nil {
		p.Config = kind.Compile(&TriggerCompiler{c: c, at: at}, trigger)
	}
	p.Secrets, p.Vars = mergeNames(nil, c.secrets[secrets:]), len(c.vars) > vars || c.allVars
	return p
}
