package httprequest

import (
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/pages"
	"github.com/stepmill/stepmill/internal/action/transfer"
)

const inputSchema = `{
	"type": "object",
	"required": ["url"],
	"additionalProperties": false,
	"properties": {
		"url": {"type": "string", "minLength": 1, "description": "An absolute http or https URL. Values that expressions insert are escaped, so that each stays one path segment or one query value; only an expression at the very beginning is inserted unchanged."},
		"method": {"type": "string", "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], "default": "GET", "description": "The method of the request."},
		"query": {"type": "object", "description": "Fields to add to the query: strings, numbers, booleans or lists of them. Null omits a field."},
		"headers": {"type": "object", "description": "Headers to send. Idempotency-Key defaults to the id of the run and the path of the step, the same for every attempt."},
		"body": {"description": "The body. A string is sent as text/plain, a file as what it is, anything else as JSON. For another type, set the header Content-Type."},
		"xml": {"type": "string", "minLength": 1, "description": "An XML document, sent as application/xml instead of body. Values that expressions insert are escaped, unless an expression is the whole document. For another type, such as application/soap+xml, set the header Content-Type."},
		"form": {"type": "object", "description": "The fields of a form, sent instead of body."},
		"multipart": {"type": "object", "description": "The fields and files of a form with files (multipart/form-data), sent instead of body: strings, numbers, booleans, files, or lists of them. Null omits a field. For another name or type of a part, write an object: {\"file\": …, \"filename\": …, \"type\": …} or {\"value\": …, \"type\": …}. Fields are sent before files."},
		"response": {"type": "string", "enum": ["value", "file"], "default": "value", "description": "What becomes of the body of the response. value: it is part of the output. file: it is stored as a file of any size, if the status is one of success (2xx)."},
		"follow_redirects": {"type": "boolean", "default": true, "description": "Whether redirects are followed, up to five."},
		"fail_on": {"type": "string", "pattern": "^(>=[1-5][0-9][0-9]|never)$", "default": ">=400", "description": "The statuses that count as failures: >= followed by a status, or never."},
		"paginate": {
			"type": "object",
			"required": ["style", "items"],
			"additionalProperties": false,
			"description": "Reads all pages of a list, one request per page. items, next and more are expressions without ${{ }}. They are evaluated for each page and can use body, headers and status of its response, and page: its number, cursor, offset and size. The output has the items of all pages, the number of pages, and more. Each page is recorded before the next one is requested.",
			"properties": {
				"style": {"type": "string", "enum": ["cursor", "page", "offset", "link", "next_url"], "description": "How the next page is requested. cursor: with a value of the response. page: with a page number. offset: with the number of items before it. link: at the URL in the header Link with rel=next. next_url: at a URL in the response. A URL must be on the host of the step."},
				"items": {"type": "string", "minLength": 1, "description": "The list of items of a page.", "examples": ["body.orders"]},
				"next": {"type": "string", "minLength": 1, "description": "Required for cursor: the cursor of the next page, and for next_url: its URL. Null or empty text after the last page.", "examples": ["body.next_cursor"]},
				"more": {"type": "string", "minLength": 1, "description": "Whether another page follows. By default there is none after a page without items, or with fewer than size, for page and offset; and after a page without a next one for the other styles.", "examples": ["body.has_more"]},
				"param": {"type": "string", "minLength": 1, "description": "The parameter that the cursor, page number or offset is sent in. Defaults to the name of the style. In the body it can be a path, such as variables.after."},
				"in": {"type": "string", "enum": ["query", "body"], "default": "query", "description": "Where the parameter is: in the query, or in the body or form."},
				"start": {"type": "integer", "minimum": 0, "description": "The first page number, by default 1, or the first offset, by default 0."},
				"size": {"type": "integer", "minimum": 1, "description": "page and offset: the number of items of a full page. A page with fewer is the last one. The offset grows by it, and otherwise by the number of items."},
				"max_pages": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 100, "description": "The most pages to read."}
			}
		}
	}
}`

const outputSchema = `{
	"type": "object",
	"properties": {
		"status": {"type": "integer", "description": "The status of the response."},
		"headers": {"type": "object", "description": "The headers of the response, by lowercase name."},
		"body": {"description": "The body: a file if response is file, otherwise parsed if it is JSON, a string if it is text, {\"base64\": …} otherwise. Text, XML and JSON in another encoding than UTF-8 are decoded as their Content-Type, byte order mark or XML declaration says."},
		"truncated": {"type": "boolean", "description": "True if the step failed and only the beginning of its response was stored."},
		"items": {"type": ["array", "object"], "description": "With paginate, in place of body: the items of all pages, or a list file if they are too large for an output. status and headers are those of the last page."},
		"pages": {"type": "integer", "description": "With paginate: the number of pages that were read."},
		"more": {"type": "boolean", "description": "With paginate: true if max_pages ended the list before its last page."}
	}
}`

var examples = []action.Example{{
	Title:  "Fetch an order",
	With:   `{"url": "https://shop.example/orders/42", "query": {"full": true}}`,
	Output: `{"status": 200, "headers": {"content-type": "application/json"}, "body": {"id": 42, "total": 99.5}}`,
}, {
	Title:  "Read all pages of a list",
	With:   `{"url": "https://shop.example/orders", "query": {"limit": 2}, "paginate": {"style": "cursor", "items": "body.orders", "next": "body.next_cursor"}}`,
	Output: `{"items": [{"id": 1}, {"id": 2}, {"id": 3}], "pages": 2, "more": false, "status": 200, "headers": {"content-type": "application/json"}}`,
}}

var limits = []string{
	"The body of a response has at most 1 MiB after decompression. A response that is stored as a file may have as many bytes as the plan allows for a file.",
	"A step that fails with http_error stores at most 64 KiB of the response.",
	"At most five redirects are followed.",
	"Requests can only reach public addresses, on the ports 80, 443, and 1024 and above. --egress-allow allows private ranges. Requests to Stepmill itself are never allowed.",
	"body, xml, form and multipart cannot be combined.",
	"A file that is sent as the body or as a part is streamed, and read again if the server redirects the request or the step is retried. A response that is stored as a file is continued after an interruption if the server supports that: with a strong ETag and Range.",
	"paginate reads at most 100 pages by default and 10,000 at most. Items that are too large for an output become a list file. Each page is recorded before the next one is requested: after a crash or a failure, the step continues with the page it was reading. The timeout and the retries of the step apply to each page. Each page has its own Idempotency-Key: that of the step, a slash and the number of the page.",
}

var codes = append([]action.Code{
	{Name: transfer.HTTPError, Meaning: "The server returned a status that counts as a failure. The response is the output of the step. 408, 425, 429 and 5xx are retried."},
	{Name: pages.Failed, Meaning: "The pages of a list cannot be followed: the next page is on another host, or the same page would be read again."},
}, transfer.ClientCodes()...)
