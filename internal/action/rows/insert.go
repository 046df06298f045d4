package rows

import (
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/table"
	"github.com/stepmill/stepmill/internal/uid"
)

// newRow returns the schema of an input with the values of a row.
func newRow(values string) string {
	return `{
		"type": "object",
		"required": ["table", "values"],
		"additionalProperties": false,
		"properties": {
			` + tableField + `,
			"values": {"type": "object", "description": "` + values + ` A file column takes a file."}
		}
	}`
}

func insertEntry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "table.insert",
			Title:    "Insert a row",
			Keywords: []string{"create record", "database", "store record"},
			Summary:  "Adds a row to a table, exactly once. The step fails if the table has a row with the same key.",
			Writes:   true,
			Stores:   true,
			Input:    newRow("The values by column name. Columns that are not given are null."),
			Output:   `{"type": "object", "properties": {` + rowField + `}}`,
			Limits:   []string{onceLimit, storedLimit},
			Codes: []action.Code{
				unknownTable,
				{Name: string(fault.RowExists), Meaning: "The table has a row with the same key."},
				overLimit,
			},
			Examples: []action.Example{{
				Title:  "A new customer",
				With:   `{"table": "customers", "values": {"email": "bob@example.com", "city": "Bern"}}`,
				Output: `{"row": {"id": "row_01m7fe3gv0es8r65rzyjka792g", "values": {"email": "bob@example.com", "city": "Bern", "orders": null}, "created_at": "2026-11-17T09:30:00.000Z", "updated_at": "2026-11-17T09:30:00.000Z"}}`,
			}},
		},
		Action: write(func(in input, req action.Request) (table.Operation, error) {
			values, files, err := in.values()
			return table.Insert{RowID: uid.At(uid.Row, req.Now), Values: values, Files: files}, err
		}),
	}
}

func upsertEntry() action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:     "table.upsert",
			Title:    "Insert or update a row",
			Keywords: []string{"create or update record", "database"},
			Summary: "Adds a row, or changes the given values of the row that has the same key, exactly once. " +
				"Runs that do this at the same time never add two rows.",
			Writes: true,
			Stores: true,
			Input:  newRow("The values by column name, including the key. Columns that are not given are null in a new row."),
			Output: `{
				"type": "object",
				"properties": {
					` + rowField + `,
					"created": {"type": "boolean", "description": "Whether the row is new. Only one of several runs that upsert the same key gets true."}
				}
			}`,
			Limits: []string{onceLimit, storedLimit, "The table must have a key column, and the values must have the key. In a row that exists, columns that are not given keep their values."},
			Codes:  []action.Code{unknownTable, overLimit},
			Examples: []action.Example{{
				Title:  "Change the city of a customer, or add the customer",
				With:   `{"table": "customers", "values": {"email": "ada@example.com", "city": "Bern"}}`,
				Output: `{"created": false, "row": {"id": "row_01m7fe3gv0es8r65rzyjka792g", "values": {"email": "ada@example.com", "city": "Bern", "orders": 2}, "created_at": "2026-11-16T09:30:00.000Z", "updated_at": "2026-11-17T09:30:00.000Z"}}`,
			}},
		},
		Action: write(func(in input, req action.Request) (table.Operation, error) {
			values, files, err := in.values()
			return table.Upsert{RowID: uid.At(uid.Row, req.Now), Values: values, Files: files}, err
		}),
	}
}
