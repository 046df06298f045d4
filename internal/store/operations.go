package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/state"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/table"
)

// performOperations performs the operations of steps that have no answer yet, and
// returns the answers of all of them by path. The run holds the files in them.
func performOperations(tx *transaction, r run.Run, operations []run.Operation) (map[string]run.StepAnswer, error) {
	if len(operations) == 0 {
		return nil, nil
	}
	answers := make(map[string]run.StepAnswer, len(operations))
	for _, op := range operations {
		answer, err := database.One(tx, `SELECT answer, answer_files FROM steps WHERE run_id = $1 AND path = $2`, []any{r.ID, op.Path}, scanAnswer)
		if err != nil {
			return nil, err
		}
		if answer == nil {
			return nil, fmt.Errorf("an operation of step %q, which is not stored", op.Path)
		}
		if answer.Value != nil {
			answers[op.Path] = *answer
			continue
		}
		result, err := perform(tx, op.Operation)
		if err != nil {
			return nil, err
		}
		answers[op.Path] = result
		if err := tx.Do(`UPDATE steps SET answer = $1 WHERE run_id = $2 AND path = $3`, string(result.Value), r.ID, op.Path); err != nil {
			return nil, err
		}
		if len(result.Files) > 0 {
			if err := writeAnswerFiles(tx, r, op.Path, result); err != nil {
				return nil, err
			}
		}
	}
	return answers, nil
}

func scanAnswer(r database.Row) (answer run.StepAnswer, err error) {
	var files filePointers
	if err := r.Scan((*[]byte)(&answer.Value), (*[]byte)(&files)); err != nil {
		return answer, err
	}
	return answer, files.decode(&answer.Files)
}

// Perform performs an operation in a transaction of its own and returns its answer.
func (s Leases) Perform(ctx context.Context, op action.Operation) (run.StepAnswer, error) {
	return transact(ctx, s.db, func(tx *transaction) (answer run.StepAnswer, err error) {
		answer, err = perform(tx, op)
		return answer, err
	})
}

// perform performs an operation and returns its answer. An operation that fails with a
// fault has changed nothing: the fault is the answer, and the transaction goes on.
func perform(tx *transaction, op action.Operation) (run.StepAnswer, error) {
	var (
		output json.RawMessage
		files  []string
		err    error
	)
	if op.Rows != nil {
		output, files, err = changeRows(tx, *op.Rows)
	} else {
		output, files, err = changeKey(tx, *op.Key)
	}
	if err != nil {
		if refusal, ok := action.RefusalOf(err); ok {
			return run.StepAnswer{Value: refusal}, nil
		}
		return run.StepAnswer{}, err
	}
	answer, pointers, err := action.AnswerTo(output, files)
	return run.StepAnswer{Value: answer, Files: pointers}, err
}

// changeRows performs an operation on rows and returns its output, with the JSON
// pointers of the references to files inside it.
func changeRows(tx *transaction, w table.Write) (json.RawMessage, []string, error) {
	var (
		out table.Output
		err error
	)
	switch op := w.Op.(type) {
	case table.Insert:
		out, err = rowOutput(insertRow(tx, w.Scope, op))
	case table.Increment:
		out, err = rowOutput(incrementRow(tx, w.Scope, op))
	case table.Upsert:
		var done table.Upserted
		if done, err = upsertRow(tx, w.Scope, op); err == nil {
			out = done.Output()
		}
	case table.Update:
		var rows []table.Row
		if rows, err = updateRows(tx, w.Scope, op); err == nil {
			out, err = op.Output(rows)
		}
	case table.Delete:
		var n int
		n, err = deleteRows(tx, w.Scope, op)
		out.Count = &n
	default:
		err = fmt.Errorf("unknown operation %T", w.Op)
	}
	if err != nil {
		return nil, nil, err
	}
	output, err := strictjson.Encode(out)
	return output, out.FilePointers(), err
}

func rowOutput(row table.Row, err error) (table.Output, error) {
	out := row.Output()
	return table.Output{Row: &out}, err
}

// changeKey performs an operation on a key and returns its output, with the JSON
// pointers of the references to files inside it.
func changeKey(tx *transaction, w state.Write) (json.RawMessage, []string, error) {
	switch op := w.Op.(type) {
	case state.Set:
		return keyOutput(setKey(tx, w.Scope, op))
	case state.Increment:
		return keyOutput(incrementKey(tx, w.Scope, op))
	case state.Delete:
		deleted, err := deleteKey(tx, w.Scope, op.Name)
		if err != nil {
			return nil, nil, err
		}
		output, err := strictjson.Encode(state.Deleted{Deleted: deleted})
		return output, nil, err
	default:
		return nil, nil, fmt.Errorf("unknown operation %T", w.Op)
	}
}

func keyOutput(done state.Stored, err error) (json.RawMessage, []string, error) {
	if err != nil {
		return nil, nil, err
	}
	output, err := strictjson.Encode(done.Output())
	return output, done.FilePointers(), err
}
