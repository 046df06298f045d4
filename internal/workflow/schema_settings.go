package workflow

import "github.com/stepmill/stepmill/internal/clock"

func settingsSchema() node {
	return objectSchema("Settings", "Options of the whole workflow.", node{
		"timeout": durationProperty("Time limit", "How long the steps of a run may execute in total. Default "+clock.FormatDuration(defaultRunTimeout)+
			", at most "+clock.FormatDuration(maxRunTimeout)+". Waiting does not count."),
		"concurrency": ref("concurrency"),
	})
}

func concurrencySchema() node {
	return objectSchema("Concurrency", "Limits how many runs with the same key are in progress at a time.", node{
		"key": node{
			"title": "Key", "description": "Text with expressions, such as ${{ trigger.payload.customer }}. Without a key, the limit applies to all runs of the workflow.",
			"type": "string",
		},
		"limit": integerSchema("Limit", "How many runs may be in progress at a time.", maxRunLimit, 1),
		"on_limit": node{
			"title": "On limit", "description": "What happens to a new run when the limit is reached.",
			"type": "string", "enum": []OnLimit{Queue, Drop, CancelRunning}, "default": Queue,
			"enumDescriptions": []string{"It is queued until a slot is free.", "It is rejected.", "It starts, and the oldest run in progress is cancelled."},
		},
	})
}

func layoutSchema() node {
	coordinate := node{"type": "number", "minimum": -maxCoordinate, "maximum": maxCoordinate}
	return node{
		"title": "Layout", "description": "Positions of steps, by id, and triggers, by @ and id, in an editor. Changing it does not create a version.",
		"type": "object", "maxProperties": maxLayout,
		"propertyNames": node{"pattern": layoutKey.String()},
		"additionalProperties": node{
			"title": "Position", "description": "Two numbers: the x and y coordinates. y grows downward.",
			"type": "array", "items": coordinate, "minItems": 2, "maxItems": 2,
		},
	}
}
