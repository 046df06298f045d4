package codejs

import "github.com/stepmill/stepmill/internal/action"

const inputSchema = `{
	"type": "object",
	"required": ["code"],
	"additionalProperties": false,
	"properties": {
		"code": {"type": "string", "minLength": 1, "maxLength": 262144, "description": "The body of a function. It sees input, may use await, and its return is the result."},
		"input": {"description": "What the script sees as input: any value; null unless given."}
	}
}`

const outputSchema = `{
	"description": "What the script returned. A value that is not an object is wrapped: {\"value\": …}."
}`

var examples = []action.Example{{
	Title: "Sum up an order",
	With: `{
		"code": "const total = input.lines.reduce((sum, l) => sum + l.count * l.price, 0);\nconsole.log('total', total);\nreturn {total, large: total > 100};",
		"input": {"lines": [{"count": 2, "price": 40}, {"count": 1, "price": 25.5}]}
	}`,
	Output: `{"total": 105.5, "large": true}`,
}, {
	Title:  "Take a text apart",
	With:   `{"code": "return input.match(/\\d+/g).map(Number);", "input": "12 apples, 7 pears"}`,
	Output: `[12, 7]`,
}, {
	Title:  "Wait for a promise",
	With:   `{"code": "const parts = await Promise.all([1, 2].map(async n => n * 10));\nreturn {parts};"}`,
	Output: `{"parts": [10, 20]}`,
}}
