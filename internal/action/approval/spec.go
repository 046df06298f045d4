package approval

import "github.com/stepmill/stepmill/internal/action"

const inputSchema = `{
	"type": "object",
	"additionalProperties": false,
	"properties": {
		"message": {"type": "string", "maxLength": 4000, "description": "The question to decide, shown to the person who answers."},
		"timeout": {"type": "string", "description": "How long to wait, such as 2d. Defaults to 7d, at most 366d."},
		"on_timeout": {"type": "string", "enum": ["fail", "continue", "approve"], "description": "What happens if the step is not answered in time. fail, the default: the step fails with approval_timed_out. continue: it succeeds with approved set to false. approve: it succeeds with approved set to true."},
		"notify": {
			"type": "object",
			"additionalProperties": false,
			"required": ["url"],
			"description": "A request to send when the wait begins. The links to answer with are links.<step id>.page and links.<step id>.callback; anyone who has one can answer. Links and secrets in the request are redacted in stored data.",
			"properties": {
				"url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "The address to send it to with POST."},
				"headers": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
				"body": {"description": "The body. A string is sent as text, anything else as JSON."}
			}
		},
		"remind_every": {"type": "string", "description": "The interval at which notify is sent again until the step is answered, such as 1d; at least 1m. Requires notify."}
	}
}`

const outputSchema = `{
	"type": "object",
	"properties": {
		"approved": {"type": "boolean"},
		"by": {"type": ["string", "null"], "description": "Who answered: the id of a key, link for the page, callback for the callback. Null if the step was not answered."},
		"comment": {"type": ["string", "null"]},
		"data": {"description": "The data sent with the answer."}
	}
}`

var examples = []action.Example{{
	Title:  "An approved request",
	With:   `{"message": "Ship order 42?", "timeout": "2d"}`,
	Answer: `{"approved": true, "by": "key_01m7fe3gv0es8r65rzyjka792g", "comment": "Go ahead", "data": {"carrier": "express"}}`,
	Output: `{"approved": true, "by": "key_01m7fe3gv0es8r65rzyjka792g", "comment": "Go ahead", "data": {"carrier": "express"}}`,
}}
