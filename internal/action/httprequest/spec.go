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
		"url": {"type": "string", "minLength": 1, "description": "An absolute http or https URL. Values that expressions insert are escaped; only an expression at the very beginning is inserted unchanged."},
		"method": {"type": "string", "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], "default": "GET", "description": "The method of the request."},
		"query": {"type": "object", "description": "Fields to add to the query: strings, numbers, booleans or lists of them. Null omits a field."},
		"headers": {"type": "object", "description": "Headers to send. Idempotency-Key defaults to the id of the run and the path of the step, the same for every attempt."},
		"body": {"description": "The body. A string is sent as text, anything else as JSON."},
		"form": {"type": "object", "description": "The fields of a form, sent instead of body."},
		"follow_redirects": {"type": "boolean", "default": true, "description": "Whether redirects are followed, up to five."},
		"fail_on": {"type": "string", "pattern": "^(>=[1-5][0-9][0-9]|never)$", "default": ">=400", "description": "The statuses that count as failures: >= followed by a status, or never."}
	}
}`

const outputSchema = `{
	"type": "object",
	"properties": {
		"status": {"type": "integer", "description": "The status of the response."},
		"headers": {"type": "object", "description": "The headers of the response, by lowercase name."},
		"body": {"description": "The body: parsed if it is JSON, a string if it is text, {\"base64\": …} otherwise."},
		"truncated": {"type": "boolean", "description": "True if the step failed and only the beginning of its response was stored."}
	}
}`

var examples = []action.Example{{
	Title:  "Fetch an order",
	With:   `{"url": "https://shop.example/orders/42", "query": {"full": true}}`,
	Output: `{"status": 200, "headers": {"content-type": "application/json"}, "body": {"id": 42, "total": 99.5}}`,
}}

var limits = []string{
	"The body of a response has at most 1 MiB after decompression.",
	"A step that fails with http_error stores at most 64 KiB of the response.",
	"At most five redirects are followed.",
	"Requests can only reach public addresses, on the ports 80, 443, and 1024 and above. --egress-allow allows private ranges. Requests to Stepmill itself are never allowed.",
	"body and form cannot be combined.",
}

var codes = []action.Code{
	{Name: HTTPError, Meaning: "The server returned a status that counts as a failure. The response is the output of the step. 408, 425, 429 and 5xx are retried."},
	{Name: string(egress.Denied), Meaning: "Requests to this address are not allowed."},
	{Name: string(egress.ConnectionFailed), Meaning: "The server could not be reached, or the connection was closed early. The request is retried."},
	{Name: string(egress.TimedOut), Meaning: "The server did not respond within the timeout of the step, or did not accept a connection within 10 seconds. The request is retried."},
	{Name: string(egress.Cancelled), Meaning: "The request was aborted because the run was cancelled."},
	{Name: string(egress.TLSFailed), Meaning: "The TLS connection failed, for example because the certificate of the server is not valid."},
	{Name: string(egress.ResponseTooLarge), Meaning: "The response is larger than 1 MiB."},
	{Name: string(egress.TooManyRedirects), Meaning: "The server redirected more than five times."},
	{Name: string(egress.InvalidResponse), Meaning: "The response is not valid HTTP or cannot be decompressed."},
	{Name: string(egress.InvalidRequest), Meaning: "The request cannot be sent, for example because a header contains a line break."},
}
