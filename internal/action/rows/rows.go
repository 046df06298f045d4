// Package rows implements the actions table.*, which read and change the rows of
// tables. The ones that change rows return operations, which become part of the
// commit of the run; the others read through a Reader.
package rows

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/table"
)

// Reader reads rows.
type Reader interface {
	// GetRow returns nil if there is no such row.
	GetRow(ctx context.Context, scope table.Scope, op table.Get) (*table.Row, error)
	FindRows(ctx context.Context, scope table.Scope, op table.Find) (table.Found, error)
}

// Entries declares the actions.
func Entries(reader Reader) []action.Entry {
	return []action.Entry{
		deleteEntry(), findEntry(reader), getEntry(reader), incrementEntry(), insertEntry(), updateEntry(), upsertEntry(),
	}
}

// The descriptions of fields that several actions have.
const (
	tableField  = `"table": {"type": "string", "minLength": 1, "maxLength": 63, "description": "The name of the table, or its id."}`
	keyField    = `"key": {"type": ["string", "number"], "description": "The value that the row has in the key column of the table."}`
	idField     = `"id": {"type": "string", "minLength": 1, "description": "The id of the row."}`
	filterField = `"filter": {"type": "object", "description": "Which rows: a condition such as {\"column\": \"city\", \"op\": \"=\", \"value\": \"Bern\"}, or conditions joined by and, or and not, as in GET /v1/tables/{table_id}/rows."}`
	rowField    = `"row": {
		"type": "object",
		"description": "The row, as the API shows it.",
		"properties": {
			"id": {"type": "string"},
			"values": {"type": "object", "description": "The values by column name, including nulls."},
			"created_at": {"type": "string", "format": "date-time"},
			"updated_at": {"type": "string", "format": "date-time"}
		}
	}`
)

// onceLimit says what operations guarantee.
const onceLimit = "The change is part of the commit of the run: it happens exactly once, even if the server dies while the step is executed."

// storedLimit says what happens to values that must not be stored.
const storedLimit = "Tables are stored unencrypted: secrets are rejected in the input, and masked values of earlier steps are stored as ***."

// unknownTable is an error code of every action.
var unknownTable = action.Code{Name: string(fault.TableNotFound), Meaning: "The workspace has no table with this name or id."}

// overLimit is an error code of the actions that store values.
var overLimit = action.Code{Name: string(fault.PlanLimitExceeded), Meaning: "The table, the row or the workspace would exceed a limit of the plan. The step is retried, because rows may be deleted in the meantime."}

// write returns an action that performs the operation that parse returns.
func write(parse func(in input, req action.Request) (table.Operation, error)) action.Action {
	return action.Func(func(_ context.Context, req action.Request) (action.Result, error) {
		if req.Answer != nil {
			return action.Performed(req.Answer)
		}
		in := input{members: req.MaskedInput} // nothing that is masked may be stored
		op, err := parse(in, req)
		if err != nil {
			return action.Result{}, err
		}
		return action.Result{Operation: &action.Operation{Rows: &table.Write{Scope: in.scope(req), Op: op}}}, nil
	})
}

// input is the input of an action, which matches its schema.
type input struct{ members map[string]any }

func (in input) scope(req action.Request) table.Scope {
	return table.Scope{WorkspaceID: req.Workspace, Table: in.text("table"), Plan: req.Plan, At: req.Now}
}

func (in input) text(name string) string {
	text, _ := in.members[name].(string)
	return text
}

// number returns a whole number, or a default if it is not given.
func (in input) number(name string, without int) int {
	switch n := in.members[name].(type) {
	case int:
		return n
	case float64:
		return int(n)
	}
	return without
}

// json returns a member as JSON, or nil if it is not given.
func (in input) json(name string) (json.RawMessage, error) {
	value, given := in.members[name]
	if !given {
		return nil, nil
	}
	return strictjson.Encode(value)
}

// values returns the values for a row, and the names of those that are files.
func (in input) values() (values table.Values, files []string, err error) {
	given, _ := in.members["values"].(map[string]any)
	values = make(table.Values, len(given))
	for name, value := range given {
		if values[name], err = strictjson.Encode(value); err != nil {
			return nil, nil, err
		}
		if _, isFile := value.(*expr.File); isFile {
			files = append(files, name)
		}
	}
	return values, files, nil
}

func (in input) selector() (s table.Selector, err error) {
	s.ID, s.Limit = in.text("id"), in.number("limit", table.MaxSelected)
	if s.Key, err = in.json("key"); err != nil {
		return s, err
	}
	s.Filter, err = in.json("filter")
	return s, err
}
