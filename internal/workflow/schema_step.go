package workflow

import (
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
)

// stepSchema lists all members of a step. Which ones are allowed depends on
// whether the step is a block or uses an action.
func stepSchema(catalog *action.Catalog, services bool) node {
	step := objectSchema("Step", "An action with its input, or a loop that contains steps.", node{
		"id": refWith("id", "Id", "The name that needs and expressions use for the step; unique in the whole workflow."),
		"name": node{
			"title": "Name", "description": "The display name. Defaults to the id.",
			"type": "string", "maxLength": maxName,
		},
		"uses": usesSchema(catalog, services),
		"with": node{
			"title": "Input", "description": "The input of the action. Text in it can contain expressions between ${{ and }}.",
			"type": "object",
		},
		"needs": needsSchema(),
		"if": node{
			"title": "Condition", "description": "An expression, with or without ${{ }}, or true or false. If it is false, the step is skipped.",
			"type": []string{"string", "boolean"}, "minLength": 1,
		},
		"join": joinSchema(),
		"on_error": node{
			"title": "On error", "description": "What happens when the step fails. fail: the run fails. continue: the run continues, and steps.<id>.error has the failure.",
			"type": "string", "enum": []OnError{Fail, Continue}, "default": Fail,
		},
		"timeout": durationProperty("Time limit", "How long one attempt may take. Default "+clock.FormatDuration(defaultTimeout)+", at most "+
			clock.FormatDuration(maxTimeout)+". Waiting does not count."),
		"disabled": node{
			"title": "Disabled", "description": "Leaves the step out: it is skipped, and the steps after it come after what it needs.",
			"type": "boolean", "default": false,
		},
		"retry":      ref("retry"),
		"mask":       maskSchema(),
		"connection": ConnectionSchema("The name of the connection that authenticates the step."),
		"on_broken_connection": node{
			"title": "If the connection is broken", "description": "What the step does while its connection has to be reconnected. wait: it waits, for up to 7 days. fail: it fails.",
			"type": "string", "enum": []OnBroken{WaitIfBroken, FailIfBroken}, "default": WaitIfBroken,
		},
		"foreach": node{
			"title": "For each", "description": "An expression that returns a list. The steps of the block run once per element, which they read as item and index.",
			"type": "string", "minLength": 1,
		},
		"parallel": integerSchema("Parallel", "How many rounds of a foreach run in parallel.", maxParallel, 1),
		"repeat":   ref("repeat"),
		"steps":    arraySchema("Steps", "The steps of the block, which run in rounds. Inside the block, steps.<id> is the step of the current round.", ref("step")),
	})
	step["required"] = []string{"id"}
	step["if"] = anyMember("foreach", "repeat", "steps", "parallel")
	step["then"] = ref("block")
	step["else"] = ref("action")
	return step
}

func durationProperty(title, description string) node { return refWith("duration", title, description) }

func anyMember(names ...string) node {
	var cases []node
	for _, name := range names {
		cases = append(cases, hasMember(name))
	}
	return node{"anyOf": cases}
}

func hasMember(name string) node { return node{"required": []string{name}} }

func usesSchema(catalog *action.Catalog, services bool) node {
	var summaries []string
	names := catalog.Names()
	for _, name := range names {
		entry, _ := catalog.Find(name)
		summaries = append(summaries, entry.Spec.Summary)
	}
	kinds := []node{enumSchema(names, summaries)}
	switch {
	case !catalog.HasMore():
	case services:
		var names, summaries []string
		for _, one := range catalog.More() {
			names, summaries = append(names, one.Name), append(summaries, one.Summary)
		}
		kinds = append(kinds, enumSchema(names, summaries), ownName())
	default:
		kinds = append(kinds, anyServiceName())
	}
	return node{"title": "Action", "description": "What the step does.", "type": "string", "anyOf": kinds}
}

// enumSchema lists values. Editors show what is said about them next to those that they
// suggest.
func enumSchema(values, descriptions []string) node {
	out := node{"enum": values}
	if descriptions != nil {
		out["enumDescriptions"] = descriptions
	}
	return out
}

// ownName accepts the names of what integrations can do that a workspace has described itself.
func ownName() node {
	return node{
		"title": "Integration of the workspace", "description": "What an integration that a workspace has described itself can do.",
		"pattern": `^x_[a-z0-9_]+\.[a-z][a-z0-9_]*$`,
	}
}

// anyServiceName accepts every name of an action or a type of triggers of a service by its
// form. There are thousands of them.
func anyServiceName() node { return node{"pattern": `^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$`} }

func needsSchema() node {
	needs := arraySchema("Needs", "The ids of the steps that must end before this one starts. size.big is a path of the switch size, charge.error what happens if charge fails. Defaults to the previous step in the list. With an empty list, the step starts at once.", node{
		"type": "string", "pattern": needPattern,
	})
	needs["uniqueItems"] = true
	return needs
}

func maskSchema() node {
	paths := arraySchema("Mask", "Paths into the output of the step, such as body.access_token. From then on, the values found there are shown as *** everywhere in the run. Later steps still get them.", node{
		"type": "string", "minLength": 1, "maxLength": 200,
	})
	paths["maxItems"] = maxMasks
	return paths
}

func joinSchema() node {
	return node{
		"title": "Join", "description": "How the steps in needs must end for this one to start.",
		"type": "string", "enum": []Join{AnyRan, All, Always, First}, "default": AnyRan,
		"enumDescriptions": []string{
			"All have ended, none failed, and at least one was not skipped.",
			"All have succeeded.",
			"All have ended, in any way.",
			"One has succeeded; the others continue.",
		},
	}
}

// blockSchema describes a step that contains steps.
func blockSchema() node {
	return node{
		"title": "Block", "description": "A step that contains steps is a loop: over a list with foreach, or until a condition is true with repeat.",
		"required": []string{"steps"},
		"properties": node{
			"uses": false, "with": false, "timeout": false, "retry": false, "mask": false, "connection": false, "on_broken_connection": false,
			"steps": node{"minItems": 1},
		},
		"anyOf": []node{hasMember("foreach"), hasMember("repeat")},
		"if":    hasMember("foreach"),
		"then":  node{"properties": node{"repeat": false}},
		"else":  node{"properties": node{"parallel": false}},
	}
}

func repeatSchema() node {
	repeat := objectSchema("Repeat", "Repeats the steps of the block until a condition is true.", node{
		"until": node{
			"title": "Until", "description": "An expression. The loop ends when it is true. It can read index and the steps of the round that has just ended.",
			"type": "string", "minLength": 1,
		},
		"every": durationProperty("Every", "How long to wait between two rounds. Default: no wait."),
		"max":   integerSchema("Rounds", "The maximum number of rounds. If the condition is still false after the last one, the block fails.", maxRounds, defaultRounds),
	})
	repeat["required"] = []string{"until"}
	return repeat
}

func retrySchema() node {
	standard := defaultPolicy()
	return objectSchema("Retry", "How a step is retried after a temporary failure: a network error, a timeout, or the status 408, 425, 429 or 5xx.", node{
		"max_attempts": integerSchema("Attempts", "The maximum number of attempts, including the first.", maxAttempts, standard.MaxAttempts),
		"initial":      durationProperty("Initial delay", "The upper bound of the first delay. Default "+clock.FormatDuration(standard.Initial)+", at most "+clock.FormatDuration(MaxDelay)+"."),
		"factor": node{
			"title": "Factor", "description": "The factor by which the upper bound of the delay grows with each attempt.",
			"type": "number", "minimum": 1, "maximum": maxFactor, "default": standard.Factor,
		},
		"max_delay": durationProperty("Maximum delay", "The upper bound of any delay. Default "+clock.FormatDuration(standard.MaxDelay)+", at most "+clock.FormatDuration(MaxDelay)+"."),
	})
}
