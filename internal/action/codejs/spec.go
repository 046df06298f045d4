package codejs

import "github.com/stepmill/stepmill/internal/action"

const inputSchema = `{
	"type": "object",
	"required": ["code"],
	"additionalProperties": false,
	"properties": {
		"code": {"type": "string", "minLength": 1, "maxLength": 262144, "description": "The body of a function. It sees input, may use await, and its return value is the result."},
		"input": {"description": "The value that the script sees as input. Defaults to null. A file in it is an object of the class File, with name, type, size, sha256 and the methods text(), json() and bytes(), which return promises."}
	}
}`

const outputSchema = `{
	"description": "The return value of the script. A value that is not an object is wrapped: {\"value\": …}. Files in it, from the input or made with new File(parts, name, {type}), become files of the run."
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
}, {
	Title: "Make a file and read it",
	With: `{
		"code": "const lines = input.map(o => [o.id, o.total].join(','));\nconst csv = new File(['id,total\\n', lines.join('\\n')], 'orders.csv', {type: 'text/csv'});\nreturn {name: csv.name, size: csv.size, text: await csv.text()};",
		"input": [{"id": 7, "total": 20}, {"id": 8, "total": 5.5}]
	}`,
	Output: `{"name": "orders.csv", "size": 19, "text": "id,total\n7,20\n8,5.5"}`,
}}
