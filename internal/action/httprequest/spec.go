package httprequest

import "github.com/stepmill/stepmill/internal/action"

const inputSchema = `{
	"type": "object",
	"required": ["url"],
	"additionalProperties": false,
	"properties": {
		"url": {"type": "string", "minLength": 1, "description": "An absolute http or https URL. What expressions bring into its text is escaped; only an expression at its very beginning is taken as it is."},
		"method": {"type": "string", "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], "description": "GET unless given."},
		"query": {"type": "object", "description": "Fields to add to the query: text, numbers, truth values, or lists of them. null leaves a field out."},
		"headers": {"type": "object", "description": "Headers to send."},
		"body": {"description": "The body: a string is sent as text, anything else as JSON."},
		"form": {"type": "object", "description": "Fields of a form, sent instead of body."},
		"follow_redirects": {"type": "boolean", "description": "Whether redirects are followed, up to five; true unless given."},
		"fail_on": {"type": "string", "pattern": "^(>=[1-5][0-9][0-9]|never)$", "description": "Which statuses are failures: >=400 unless given, or never."}
	}
}`

const outputSchema = `{
	"type": "object",
	"properties": {
		"status": {"type": "integer"},
		"headers": {"type": "object", "description": "By lower-case name."},
		"body": {"description": "Parsed when it is JSON, text when it is text, {\"base64\": …} when it is neither."}
	}
}`

var examples = []action.Example{{
	Title:  "Read an order",
	With:   `{"url": "https://shop.example/orders/42", "query": {"full": true}}`,
	Output: `{"status": 200, "headers": {"content-type": "application/json"}, "body": {"id": 42, "total": 99.5}}`,
}}
