package codejs

import "github.com/stepmill/stepmill/internal/action"

const inputSchema = `{
	"type": "object",
	"required": ["code"],
	"additionalProperties": false,
	"properties": {
		"code": {"type": "string", "minLength": 1, "maxLength": 262144, "description": "The body of a function. It sees input, may use await, and its return value is the result."},
		"input": {"description": "The value that the script sees as input. Defaults to null."}
	}
}`

const outputSchema = `{
	"description": "The return value of the script. A value that is not an object is wrapped: {\"value\": …}."
}`

var examples = []action.Example{{
	Title: "Add up an order",
	With: `{
		"code": "const total = input.lines.reduce((sum, l) => sum + l.count * l.price, 0);\nconsole.log('total', total);\nreturn {total, large: total > 100};",
		"input": {"lines": [{"count": 2, "price": 40}, {"count": 1, "price": 25.5}]}
	}`,
	Output: `{"total": 105.5, "large": true}`,
}, {
	Title:  "Extract numbers from a text",
	With:   `{"code": "return input.match(/\\d+/g).map(Number);", "input": "12 apples, 7 pears"}`,
	Output: `{"value": [12, 7]}`,
}, {
	Title:  "Await promises",
	With:   `{"code": "const parts = await Promise.all([1, 2].map(async n => n * 10));\nreturn {parts};"}`,
	Output: `{"parts": [10, 20]}`,
}}
