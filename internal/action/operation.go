package action

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/state"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/table"
)

// Operation changes rows of a table or a key. It is part of the next commit of the
// run, so that it happens exactly once. Its result is the answer to the step: the
// action runs again with it as [Request.Answer], which [Performed] reads.
//
// Exactly one of the members is set. An operation holds everything that its result
// depends on apart from the data, so that a commit can be repeated.
type Operation struct {
	Rows *table.Write
	Key  *state.Write
}

// performed is the answer to a step that returned an operation.
type performed struct {
	Output json.RawMessage `json:"output,omitempty"`
	Error  *refusal        `json:"error,omitempty"`
}

// refusal says why an operation was not performed.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// AnswerTo returns the answer to a step whose operation had the given output. The JSON
// pointers are those of the references to files inside the output and the answer.
func AnswerTo(output json.RawMessage, files []string) (answer json.RawMessage, pointers []string, err error) {
	for _, pointer := range files {
		pointers = append(pointers, "/output"+pointer)
	}
	answer, err = strictjson.Encode(performed{Output: output})
	return answer, pointers, err
}

// RefusalOf returns the answer to a step whose operation failed with an error. It
// returns false if the error does not concern the operation, but the database: the
// operation has to be tried again then.
func RefusalOf(err error) (answer json.RawMessage, ok bool) {
	failure, ok := FailureOf(err)
	if !ok {
		return nil, false
	}
	answer, err = strictjson.Encode(performed{Error: &refusal{Code: failure.Code, Message: failure.Message}})
	return answer, err == nil
}

// Performed turns the answer to a step that returned an operation into the result of
// the step.
func Performed(answer map[string]any) (Result, error) {
	if refused, ok := answer["error"].(map[string]any); ok {
		code, _ := refused["code"].(string)
		message, _ := refused["message"].(string)
		return Result{}, failure(code, message)
	}
	return Result{Output: answer["output"]}, nil
}

// FailureOf returns the failure of a step that used tables or keys. It returns false
// if the error is not the caller's fault.
func FailureOf(err error) (*Failure, bool) {
	f, ok := fault.As(err)
	if !ok || f.Code.Status() >= http.StatusInternalServerError {
		return nil, false
	}
	if f.Code != fault.InvalidRequest {
		return failure(string(f.Code), f.Message), true
	}
	message := f.Message
	if len(f.Details) > 0 {
		var lines []string
		for _, detail := range f.Details {
			lines = append(lines, "with"+detail.Pointer+": "+detail.Message)
		}
		message = strings.Join(lines, "; ")
	}
	return failure(InvalidInput, message), true
}

// failure returns the failure with a code. Exceeding a limit of the plan is retryable,
// because other runs delete rows and keys, and keys expire.
func failure(code, message string) *Failure {
	return &Failure{Code: code, Message: message, Retryable: code == string(fault.PlanLimitExceeded)}
}

// ReadFailed is the error code of a step that could not read tables or keys.
var ReadFailed = Code{Name: readFailed, Meaning: "The database could not be read in time. The step is retried."}

const readFailed = "read_failed"

// ReadError returns the error of a step for an error of a read. A failure of the
// database is retryable.
func ReadError(ctx context.Context, err error) error {
	if failure, ok := FailureOf(err); ok {
		return failure
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &Failure{Code: readFailed, Message: "the database could not be read; try again later", Retryable: true}
}
