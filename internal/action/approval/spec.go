package approval

import "github.com/stepmill/stepmill/internal/action"

const inputSchema = `{
	"type": "object",
	"additionalProperties": false,
	"properties": {
		"message": {"type": "string", "maxLength": 4000, "description": "What is to be decided, shown to whoever answers."},
		"timeout": {"type": "string", "description": "How long to wait, such as 2d; 7d unless given, at most 366d."},
		"on_timeout": {"type": "string", "enum": ["fail", "continue", "approve"], "description": "What follows when nobody answers: fail, unless given; continue with approved being false; or approve, and continue with approved being true."},
		"notify": {
			"type": "object",
			"additionalProperties": false,
			"required": ["url"],
			"description": "A request that sends word when the wait begins. The links to answer with are links.<step id>.page and links.<step id>.callback.",
			"properties": {
				"url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "Where to send it with POST."},
				"headers": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
				"body": {"description": "Sent as JSON; a string is sent as text."}
			}
		},
		"remind_every": {"type": "string", "description": "Sends word again and again while nobody answers, such as 1d; at least 1m."}
	}
}`

const outputSchema = `{
	"type": "object",
	"properties": {
		"approved": {"type": "boolean"},
		"by": {"type": ["string", "null"], "description": "Who answered: the id of a key, link for the page, callback for the callback; null when nobody did."},
		"comment": {"type": ["string", "null"]},
		"data": {"description": "What came with the answer."}
	}
}`

var examples = []action.Example{{
	Title:  "Somebody approved",
	With:   `{"message": "Ship order 42?", "timeout": "2d"}`,
	Answer: `{"approved": true, "by": "key_01m7fe3gv0es8r65rzyjka792g", "comment": "Go ahead", "data": {"carrier": "express"}}`,
	Output: `{"approved": true, "by": "key_01m7fe3gv0es8r65rzyjka792g", "comment": "Go ahead", "data": {"carrier": "express"}}`,
}}
