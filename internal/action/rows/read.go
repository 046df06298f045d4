package rows

import (
	"context"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/table"
)

// defaultLimit is how many rows table.find returns unless told otherwise.
const defaultLimit = 100

func getEntry(reader Reader) action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "table.get",
			Title:    "Get a row",
			Keywords: []string{"read record", "lookup", "database"},
			Summary:  "Reads one row of a table by its key or id. It is not a failure if there is none.",
			Input: `{
				"type": "object",
				"required": ["table"],
				"additionalProperties": false,
				"properties": {
					` + tableField + `,
					` + keyField + `,
					` + idField + `
				}
			}`,
			Output: `{
				"type": "object",
				"properties": {
					"found": {"type": "boolean", "description": "Whether there is such a row. Otherwise row is null."},
					` + rowField + `
				}
			}`,
			ExactlyOne: []string{"key", "id"},
			Limits:     []string{"Give either key or id.", "The row can change between this step and a later one. To decide and change at once, use table.upsert, table.increment or state.set with if_absent."},
			Codes:      []action.Code{unknownTable, action.ReadFailed},
			Examples: []action.Example{{
				Title:  "A customer",
				With:   `{"table": "customers", "key": "ada@example.com"}`,
				Output: `{"found": true, "row": {"id": "row_01m7fe3gv0es8r65rzyjka792g", "values": {"email": "ada@example.com", "city": "Zurich", "orders": 2}, "created_at": "2026-11-16T09:30:00.000Z", "updated_at": "2026-11-16T09:30:00.000Z"}}`,
			}, {
				Title:  "A key that no row has",
				With:   `{"table": "customers", "key": "eve@example.com"}`,
				Output: `{"found": false, "row": null}`,
			}},
		},
		Action: action.Func(func(ctx context.Context, req action.Request) (action.Result, error) {
			in := input{members: req.Input}
			selector, err := in.selector()
			if err != nil {
				return action.Result{}, err
			}
			found, err := reader.GetRow(ctx, in.scope(req), table.Get{Selector: selector})
			if err != nil {
				return action.Result{}, action.ReadError(ctx, err)
			}
			var row any
			if found != nil {
				if row, _, err = valueOf(*found); err != nil {
					return action.Result{}, err
				}
			}
			return action.Result{Output: map[string]any{"found": found != nil, "row": row}, Files: found != nil && len(found.Files) > 0}, nil
		}),
	}
}

func findEntry(reader Reader) action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "table.find",
			Title:    "Find rows",
			Keywords: []string{"query", "lookup", "filter rows", "list records", "select", "database"},
			Summary:  "Reads the rows of a table that match a filter, in the order of a column.",
			Input: `{
				"type": "object",
				"required": ["table"],
				"additionalProperties": false,
				"properties": {
					` + tableField + `,
					` + filterField + `,
					"sort": {"type": "string", "minLength": 1, "description": "The column to sort by, descending after a -. Without it, the oldest row comes first."},
					"limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100, "description": "The most rows to return."}
				}
			}`,
			Output: `{
				"type": "object",
				"properties": {
					"rows": {"type": "array", "items": {"type": "object"}, "description": "The rows, each with id, values, created_at and updated_at."},
					"count": {"type": "integer", "description": "The number of rows in the list."},
					"more": {"type": "boolean", "description": "Whether more rows match than are in the list."}
				}
			}`,
			Limits: []string{
				"At most 1,000 rows, and no more than fit in one output; the field more says whether others match.",
				"A condition on the key or on an indexed column that every result must meet reads only the rows in its range, and sorting by such a column only as many as the result needs. " +
					"Everything else reads all rows of the table, which takes time in a large one. In a table with hundreds of thousands of rows it can take too long, and the step fails.",
			},
			Codes: []action.Code{unknownTable, action.ReadFailed},
			Examples: []action.Example{{
				Title:  "The best customers of a city",
				With:   `{"table": "customers", "filter": {"column": "city", "op": "=", "value": "Zurich"}, "sort": "-orders", "limit": 10}`,
				Output: `{"rows": [{"id": "row_01m7fe3gv0es8r65rzyjka792g", "values": {"email": "ada@example.com", "city": "Zurich", "orders": 2}, "created_at": "2026-11-16T09:30:00.000Z", "updated_at": "2026-11-16T09:30:00.000Z"}], "count": 1, "more": false}`,
			}},
		},
		Action: action.Func(func(ctx context.Context, req action.Request) (action.Result, error) {
			return find(ctx, reader, req)
		}),
	}
}

func find(ctx context.Context, reader Reader, req action.Request) (action.Result, error) {
	in := input{members: req.Input}
	filter, err := in.json("filter")
	if err != nil {
		return action.Result{}, err
	}
	found, err := reader.FindRows(ctx, in.scope(req), table.Find{
		Filter: filter, Sort: in.text("sort"), Limit: in.number("limit", defaultLimit), MaxBytes: req.MaxOutput,
	})
	if err != nil {
		return action.Result{}, action.ReadError(ctx, err)
	}
	rows, more, files, size := []any{}, found.Next != "", false, len(`{"count":1000,"more":false,"rows":[]}`)
	for _, row := range found.Rows {
		value, length, err := valueOf(row)
		if err != nil {
			return action.Result{}, err
		}
		if size += length + len(","); req.MaxOutput > 0 && size > req.MaxOutput {
			more = true
			break
		}
		rows, files = append(rows, value), files || len(row.Files) > 0
	}
	return action.Result{Output: map[string]any{"rows": rows, "count": len(rows), "more": more}, Files: files}, nil
}

// valueOf returns a row as expressions see it, and the length of its JSON.
func valueOf(row table.Row) (value any, length int, err error) {
	output := row.Output()
	text, err := strictjson.Encode(output)
	if err != nil {
		return nil, 0, err
	}
	value, err = expr.FromJSONWithFiles(text, output.FilePointers())
	return value, len(text), err
}
