package httprequest

import (
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/egress"
)

const inputSchema = `{
	"type": "object",
	"required": ["url"],
	"additionalProperties": false,
	"properties": {
		"url": {"type": "string", "minLength": 1, "description": "An absolute http or https URL. What expressions bring into its text is escaped; only an expression at its very beginning is taken as it is."},
		"method": {"type": "string", "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], "default": "GET", "description": "The method of the request."},
		"query": {"type": "object", "description": "Fields to add to the query: text, numbers, truth values, or lists of them. null leaves a field out."},
		"headers": {"type": "object", "description": "Headers to send. Idempotency-Key is the id of the run and the path of the step unless given, the same for every attempt."},
		"body": {"description": "The body: a string is sent as text, anything else as JSON."},
		"form": {"type": "object", "description": "Fields of a form, sent instead of body."},
		"follow_redirects": {"type": "boolean", "default": true, "description": "Whether redirects are followed, up to five."},
		"fail_on": {"type": "string", "pattern": "^(>=[1-5][0-9][0-9]|never)$", "default": ">=400", "description": "Which statuses are failures: >= and a status, or never."}
	}
}`

const outputSchema = `{
	"type": "object",
	"properties": {
		"status": {"type": "integer", "description": "The status of the answer."},
		"headers": {"type": "object", "description": "The headers of the answer, by lower-case name."},
		"body": {"description": "Parsed when it is JSON, text when it is text, {\"base64\": …} when it is neither."}
	}
}`

var examples = []action.Example{{
	Title:  "Read an order",
	With:   `{"url": "https://shop.example/orders/42", "query": {"full": true}}`,
	Output: `{"status": 200, "headers": {"content-type": "application/json"}, "body": {"id": 42, "total": 99.5}}`,
}}

var limits = []string{
	"The body of an answer has at most 1 MiB, unpacked.",
	"At most five redirects are followed.",
	"Only public addresses can be reached, on the ports 80, 443 and from 1024 on. --egress-allow opens private ranges; Stepmill itself can never be reached.",
	"body and form cannot be sent together.",
}

var codes = []action.Code{
	{Name: HTTPError, Meaning: "The server answered with a status that is a failure. 408, 425, 429 and 5xx are tried again."},
	{Name: string(egress.Denied), Meaning: "The address may not be reached from here."},
	{Name: string(egress.ConnectionFailed), Meaning: "The server could not be reached, or broke off. It is tried again."},
	{Name: string(egress.TimedOut), Meaning: "The server took too long. It is tried again."},
	{Name: string(egress.Cancelled), Meaning: "The call was given up, because the run was cancelled."},
	{Name: string(egress.TLSFailed), Meaning: "The certificate of the server, or its TLS, is not acceptable."},
	{Name: string(egress.ResponseTooLarge), Meaning: "The answer is longer than 1 MiB."},
	{Name: string(egress.TooManyRedirects), Meaning: "More than five redirects."},
	{Name: string(egress.InvalidResponse), Meaning: "The answer is not HTTP, or cannot be unpacked."},
	{Name: string(egress.InvalidRequest), Meaning: "The request cannot be sent, for example because a header holds a line break."},
}
