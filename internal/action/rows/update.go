package rows

import (
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/table"
)

// changeLimit is about rows that are selected by a filter.
const (
	changeLimit = `"limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1000, "description": "With a filter: the most rows to take, the oldest first."}`
	changeCost  = "Give exactly one of key, id and filter. A filter takes at most 1,000 rows, fewer in a table with more than four indexed columns, and costs as much as in table.find."
)

func updateEntry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "table.update",
			Title:    "Update rows",
			Keywords: []string{"edit record", "change", "database"},
			Summary:  "Changes values of one row, or of all rows that match a filter, exactly once.",
			Writes:   true,
			Stores:   true,
			Input: `{
				"type": "object",
				"required": ["table", "values"],
				"additionalProperties": false,
				"properties": {
					` + tableField + `,
					` + keyField + `,
					` + idField + `,
					` + filterField + `,
					` + changeLimit + `,
					"values": {"type": "object", "description": "The new values by column name. Other columns keep their values; null clears one."}
				}
			}`,
			Output: `{
				"type": "object",
				"properties": {
					"count": {"type": "integer", "description": "How many rows were changed."},
					` + rowField + `
				}
			}`,
			ExactlyOne: []string{"key", "id", "filter"},
			Limits:     []string{onceLimit, storedLimit, changeCost, "The output has the row only if it was named by its key or id."},
			Codes: []action.Code{
				unknownTable,
				{Name: string(fault.RowNotFound), Meaning: "There is no row with this key or id. A filter that matches nothing is not a failure."},
				{Name: string(fault.RowExists), Meaning: "Another row already has the new key."},
				overLimit,
			},
			Examples: []action.Example{{
				Title:  "One row",
				With:   `{"table": "customers", "key": "ada@example.com", "values": {"city": null}}`,
				Output: `{"count": 1, "row": {"id": "row_01m7fe3gv0es8r65rzyjka792g", "values": {"email": "ada@example.com", "city": null, "orders": 2}, "created_at": "2026-11-16T09:30:00.000Z", "updated_at": "2026-11-17T09:30:00.000Z"}}`,
			}, {
				Title:  "All rows of a city",
				With:   `{"table": "customers", "filter": {"column": "city", "op": "=", "value": "Zurich"}, "values": {"city": "Bern"}}`,
				Output: `{"count": 1}`,
			}},
		},
		Action: write(func(in input, _ action.Request) (table.Operation, error) {
			selector, err := in.selector()
			if err != nil {
				return nil, err
			}
			values, files, err := in.values()
			return table.Update{Selector: selector, Values: values, Files: files}, err
		}),
	}
}

func deleteEntry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "table.delete",
			Title:    "Delete rows",
			Keywords: []string{"remove record", "database"},
			Summary:  "Deletes one row, or all rows that match a filter, exactly once. It is not a failure if there is none.",
			Writes:   true,
			Stores:   true,
			Input: `{
				"type": "object",
				"required": ["table"],
				"additionalProperties": false,
				"properties": {
					` + tableField + `,
					` + keyField + `,
					` + idField + `,
					` + filterField + `,
					` + changeLimit + `
				}
			}`,
			Output:     `{"type": "object", "properties": {"count": {"type": "integer", "description": "How many rows were deleted."}}}`,
			ExactlyOne: []string{"key", "id", "filter"},
			Limits:     []string{onceLimit, changeCost},
			Codes:      []action.Code{unknownTable},
			Examples: []action.Example{{
				Title:  "Customers without orders",
				With:   `{"table": "customers", "filter": {"column": "orders", "op": "=", "value": 0}}`,
				Output: `{"count": 0}`,
			}},
		},
		Action: write(func(in input, _ action.Request) (table.Operation, error) {
			selector, err := in.selector()
			return table.Delete{Selector: selector}, err
		}),
	}
}

func incrementEntry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "table.increment",
			Title:    "Increment a number in a row",
			Keywords: []string{"count", "counter", "database"},
			Summary:  "Adds to a number in a row, exactly once. No increment is lost, however many runs do this at the same time.",
			Writes:   true,
			Stores:   true,
			Input: `{
				"type": "object",
				"required": ["table", "column"],
				"additionalProperties": false,
				"properties": {
					` + tableField + `,
					` + keyField + `,
					` + idField + `,
					"column": {"type": "string", "minLength": 1, "description": "The column, of type number. A null counts as 0."},
					"by": {"type": "number", "default": 1, "description": "What to add. Sums are exact."}
				}
			}`,
			Output:     `{"type": "object", "properties": {` + rowField + `}}`,
			ExactlyOne: []string{"key", "id"},
			Limits:     []string{onceLimit, "Give either key or id. The row must exist: table.upsert adds one."},
			Codes: []action.Code{
				unknownTable,
				{Name: string(fault.RowNotFound), Meaning: "There is no row with this key or id."},
				overLimit,
			},
			Examples: []action.Example{{
				Title:  "Count an order",
				With:   `{"table": "customers", "key": "ada@example.com", "column": "orders"}`,
				Output: `{"row": {"id": "row_01m7fe3gv0es8r65rzyjka792g", "values": {"email": "ada@example.com", "city": "Zurich", "orders": 3}, "created_at": "2026-11-16T09:30:00.000Z", "updated_at": "2026-11-17T09:30:00.000Z"}}`,
			}},
		},
		Action: write(func(in input, _ action.Request) (table.Operation, error) {
			selector, err := in.selector()
			if err != nil {
				return nil, err
			}
			by, err := in.json("by")
			return table.Increment{Selector: selector, Column: in.text("column"), By: by}, err
		}),
	}
}
