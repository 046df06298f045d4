package workflow

import "github.com/stepmill/stepmill/internal/duration"

func settingsSchema() node {
	return closed("Settings", "The options of the whole workflow.", node{
		"timeout": bounded("Time limit", "How long the steps of a run may be executed in all, "+duration.Format(defaultRunTimeout)+
			" unless given, at most "+duration.Format(maxRunTimeout)+". Waiting does not count."),
		"concurrency": ref("concurrency"),
	})
}

func concurrencySchema() node {
	return closed("Concurrency", "Bounds how many runs with the same key are under way at a time.", node{
		"key": node{
			"title": "Key", "description": "Text with expressions, such as ${{ trigger.payload.customer }}. Without a key all runs of the workflow count together.",
			"type": "string",
		},
		"limit": whole("Limit", "How many runs are under way at a time.", maxRunLimit, 1),
		"on_limit": node{
			"title": "On limit", "description": "What becomes of a run that would be one too many.",
			"type": "string", "enum": []OnLimit{Queue, Drop, CancelRunning}, "default": Queue,
			"enumDescriptions": []string{"It waits for its turn.", "It is refused.", "The oldest is cancelled for it."},
		},
	})
}

func layoutSchema() node {
	coordinate := node{"type": "number", "minimum": -maxCoordinate, "maximum": maxCoordinate}
	return node{
		"title": "Layout", "description": "Where an editor draws steps, by id, and triggers, by @ and id. Changing it makes no version.",
		"type": "object", "maxProperties": maxLayout,
		"propertyNames": node{"pattern": layoutKey.String()},
		"additionalProperties": node{
			"title": "Place", "description": "Two numbers: how far to the right, how far down.",
			"type": "array", "items": coordinate, "minItems": 2, "maxItems": 2,
		},
	}
}
