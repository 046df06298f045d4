package workflow

import (
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/duration"
)

// stepSchema is a step with all members it can have; whether it is a block or
// uses an action decides which of them it may.
func stepSchema(catalog *action.Catalog) node {
	step := closed("Step", "An action with its input, or a loop with steps of its own.", node{
		"id": described("id", "Id", "The name by which needs and expressions refer to the step; unique in the whole workflow."),
		"name": node{
			"title": "Name", "description": "What people see; the id unless given.",
			"type": "string", "maxLength": maxName,
		},
		"uses": usesSchema(catalog),
		"with": node{
			"title": "Input", "description": "The input of the action. Text in it may hold expressions between ${{ and }}.",
			"type": "object",
		},
		"needs": needsSchema(),
		"if": node{
			"title": "Condition", "description": "An expression, with or without ${{ }}, or true or false. When it is false the step is skipped.",
			"type": []string{"string", "boolean"}, "minLength": 1,
		},
		"join": joinSchema(),
		"on_error": node{
			"title": "On error", "description": "What a failure of the step means. fail: the run fails. continue: the run goes on, and the failure is in steps.<id>.error.",
			"type": "string", "enum": []OnError{Fail, Continue}, "default": Fail,
		},
		"timeout": bounded("Time limit", "How long one attempt may take, "+duration.Format(defaultTimeout)+" unless given, at most "+
			duration.Format(maxTimeout)+". Waiting does not count."),
		"retry": ref("retry"),
		"foreach": node{
			"title": "For each", "description": "An expression for a list. The steps of the block run once for each element, which they see as item and index.",
			"type": "string", "minLength": 1,
		},
		"parallel": whole("Parallel", "How many rounds of a foreach run at the same time.", maxParallel, 1),
		"repeat":   ref("repeat"),
		"steps":    list("Steps", "The steps of the block, run in rounds. Inside, steps.<id> means the step of this round.", ref("step")),
	})
	step["required"] = []string{"id"}
	step["if"] = anyMember("foreach", "repeat", "steps", "parallel")
	step["then"] = ref("block")
	step["else"] = ref("action")
	return step
}

func bounded(title, description string) node { return described("duration", title, description) }

func anyMember(names ...string) node {
	var cases []node
	for _, name := range names {
		cases = append(cases, hasMember(name))
	}
	return node{"anyOf": cases}
}

func hasMember(name string) node { return node{"required": []string{name}} }

func usesSchema(catalog *action.Catalog) node {
	var summaries []string
	for _, name := range catalog.Names() {
		entry, _ := catalog.Find(name)
		summaries = append(summaries, entry.Spec.Summary)
	}
	return node{
		"title": "Action", "description": "What the step does.",
		"type": "string", "enum": catalog.Names(),
		// Editors show these beside the names they offer.
		"enumDescriptions": summaries,
	}
}

func needsSchema() node {
	needs := list("Needs", "The ids of the steps that this one comes after; the step before it in the list unless given. An empty list starts at once.", ref("id"))
	needs["uniqueItems"] = true
	return needs
}

func joinSchema() node {
	return node{
		"title": "Join", "description": "How the steps in needs must have ended for this one to start.",
		"type": "string", "enum": []Join{AnyRan, All, Always, First}, "default": AnyRan,
		"enumDescriptions": []string{
			"All have ended, none failed, and at least one was not skipped.",
			"All have succeeded.",
			"All have ended, however.",
			"One has succeeded; the others go on.",
		},
	}
}

// blockSchema is what a step with steps of its own must and must not have.
func blockSchema() node {
	return node{
		"title": "Block", "description": "A step with steps of its own is a loop: over a list with foreach, or until a condition holds with repeat.",
		"required": []string{"steps"},
		"properties": node{
			"uses": false, "with": false, "timeout": false, "retry": false,
			"steps": node{"minItems": 1},
		},
		"anyOf": []node{hasMember("foreach"), hasMember("repeat")},
		"if":    hasMember("foreach"),
		"then":  node{"properties": node{"repeat": false}},
		"else":  node{"properties": node{"parallel": false}},
	}
}

func repeatSchema() node {
	repeat := closed("Repeat", "Runs the steps of the block again and again until a condition holds.", node{
		"until": node{
			"title": "Until", "description": "The condition that ends the rounds, an expression. It sees the steps of the round that has just ended, and index.",
			"type": "string", "minLength": 1,
		},
		"every": bounded("Every", "How long to rest between two rounds; not at all unless given."),
		"max":   whole("Rounds", "How many rounds there are at most. If the condition does not hold after the last, the block fails.", maxRounds, defaultRounds),
	})
	repeat["required"] = []string{"until"}
	return repeat
}

func retrySchema() node {
	standard := defaultPolicy()
	return closed("Retry", "When a failure that may pass is tried again: a network error, a time-out, or the status 408, 425, 429 or 5xx.", node{
		"max_attempts": whole("Attempts", "How many attempts there are, the first included.", maxAttempts, standard.MaxAttempts),
		"initial":      bounded("Initial delay", "The bound of the first delay, "+duration.Format(standard.Initial)+" unless given, at most "+duration.Format(MaxDelay)+"."),
		"factor": node{
			"title": "Factor", "description": "By how much the bound of the delay grows each time.",
			"type": "number", "minimum": 1, "maximum": maxFactor, "default": standard.Factor,
		},
		"max_delay": bounded("Largest delay", "The largest bound of a delay, "+duration.Format(standard.MaxDelay)+" unless given, at most "+duration.Format(MaxDelay)+"."),
	})
}
