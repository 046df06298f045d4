package graphqlrequest

import (
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/pages"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
)

const inputSchema = `{
	"type": "object",
	"required": ["url", "query"],
	"additionalProperties": false,
	"properties": {
		"url": {"type": "string", "minLength": 1, "examples": ["https://api.example.com/graphql"], "description": "The absolute http or https URL of the GraphQL endpoint. Values that expressions insert are escaped; only an expression at the very beginning is inserted unchanged."},
		"query": {"type": "string", "minLength": 1, "maxLength": 262144, "x-format": "multiline", "x-literal": "declare a variable, as in query ($id: ID!), and give its value in variables", "examples": ["query ($id: ID!) { order(id: $id) { total } }"], "description": "A GraphQL document with a query or a mutation. It cannot contain expressions: values belong in variables."},
		"variables": {"type": "object", "description": "The values of the variables that the query declares, by name without $."},
		"operation_name": {"type": "string", "minLength": 1, "description": "Which operation to execute, if the query has several."},
		"headers": {"type": "object", "description": "Headers to send. Idempotency-Key defaults to the id of the run and the path of the step, the same for every attempt."},
		"errors": {"type": "string", "enum": ["fail", "return"], "default": "fail", "description": "What happens if the answer has errors. fail: the step fails with graphql_errors. return: the output has the list errors, beside the data that there is. Transient errors fail the step in any case, so that it is retried."},
		"paginate": {
			"type": "object",
			"required": ["items", "next"],
			"additionalProperties": false,
			"description": "Reads all pages of a list, one request per page. items, next and more are expressions without ${{ }}. They are evaluated for each page and can use data, extensions, headers and status of its answer, and page: its number and cursor. The output has the items of all pages, the number of pages, and more. Each page is recorded before the next one is requested.",
			"properties": {
				"items": {"type": "string", "minLength": 1, "description": "The list of items of a page.", "examples": ["data.orders.nodes"]},
				"next": {"type": "string", "minLength": 1, "description": "The cursor of the next page. Null or empty text after the last page.", "examples": ["data.orders.pageInfo.endCursor"]},
				"more": {"type": "string", "minLength": 1, "description": "Whether another page follows. By default there is none after a page without a next one.", "examples": ["data.orders.pageInfo.hasNextPage"]},
				"variable": {"type": "string", "minLength": 1, "default": "after", "description": "The variable that gets the cursor, without $. The query has to declare it. It can be a path, such as input.after."},
				"max_pages": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 100, "description": "The most pages to read."}
			}
		}
	}
}`

const outputSchema = `{
	"type": "object",
	"properties": {
		"data": {"description": "The data of the answer. Null if there is none."},
		"extensions": {"type": "object", "description": "What the service adds to the answer, such as the cost of the query."},
		"status": {"type": "integer", "description": "The status of the response."},
		"headers": {"type": "object", "description": "The headers of the response, by lowercase name."},
		"errors": {"type": "array", "items": {"type": "object"}, "description": "With errors: return, and if the step failed: the errors of the answer, an empty list if there are none."},
		"body": {"description": "In place of data and errors if the step failed because the response is no answer of a GraphQL service: the body."},
		"truncated": {"type": "boolean", "description": "True if the step failed and only the beginning of its answer was stored."},
		"items": {"type": ["array", "object"], "description": "With paginate, in place of data and extensions: the items of all pages, or a list file if they are too large for an output. status and headers are those of the last page."},
		"pages": {"type": "integer", "description": "With paginate: the number of pages that were read."},
		"more": {"type": "boolean", "description": "With paginate: true if max_pages ended the list before its last page."}
	}
}`

var examples = []action.Example{{
	Title:  "Fetch an order",
	With:   `{"url": "https://shop.example/graphql", "query": "query ($id: ID!) {\n  order(id: $id) { total }\n}", "variables": {"id": "42"}}`,
	Output: `{"data": {"order": {"total": 99.5}}, "extensions": {}, "status": 200, "headers": {"content-type": "application/json"}}`,
}, {
	Title:  "Read all pages of a list",
	With:   `{"url": "https://shop.example/graphql", "query": "query ($after: String) {\n  orders(first: 2, after: $after) {\n    nodes { id }\n    pageInfo { hasNextPage endCursor }\n  }\n}", "paginate": {"items": "data.orders.nodes", "next": "data.orders.pageInfo.endCursor", "more": "data.orders.pageInfo.hasNextPage"}}`,
	Output: `{"items": [{"id": 1}, {"id": 2}, {"id": 3}], "pages": 2, "more": false, "status": 200, "headers": {"content-type": "application/json"}}`,
}}

var limits = []string{
	"The query is one document of at most 256 KiB, sent with POST as JSON. Subscriptions, and uploads of files as forms, are not supported.",
	"An answer has at most 1 MiB after decompression. A step that fails with graphql_errors stores at most 64 KiB of it.",
	"At most five redirects are followed.",
	"Requests can only reach public addresses, on the ports 80, 443, and 1024 and above. --egress-allow allows private ranges. Requests to Stepmill itself are never allowed.",
	"Errors are transient if the status is 408, 425, 429 or 5xx, or if the code of an error is THROTTLED, RATELIMITED, RATE_LIMITED, RATE_LIMIT_EXCEEDED or TOO_MANY_REQUESTS. Retry-After is honoured. A mutation whose answer has data besides transient errors is not retried, because a part of it has been performed.",
	"A mutation is retried like any other request if it is not known whether the service has received it. A service that does not recognize the Idempotency-Key may then perform it twice, unless the step has max_attempts: 1; after a crash, even then.",
	"paginate reads at most 100 pages by default and 10,000 at most. Items that are too large for an output become a list file. Each page is recorded before the next one is requested: after a crash or a failure, the step continues with the page it was reading. The timeout and the retries of the step apply to each page. Each page has its own Idempotency-Key: that of the step, a slash and the number of the page.",
}

var codes = codesOf(transfer.ClientCodes())

func codesOf(client []action.Code) []action.Code {
	for i := range client {
		if client[i].Name == string(egress.InvalidResponse) {
			client[i].Meaning = "The response is not valid HTTP, cannot be decompressed, or is no answer of a GraphQL service."
		}
	}
	return append([]action.Code{
		{Name: GraphQLErrors, Meaning: "The answer of the GraphQL service has errors. The answer is the output of the step. Transient errors are retried."},
		{Name: transfer.HTTPError, Meaning: "The server returned a status of 400 or more, without GraphQL errors. The response is the output of the step. 408, 425, 429 and 5xx are retried."},
		{Name: pages.Failed, Meaning: "The pages of a list cannot be followed: the same page would be read again."},
	}, client...)
}
