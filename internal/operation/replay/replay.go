// Package replay runs the tests of integrations, the files tests.yaml beside their
// manifests. A test has the input of an operation, the requests that it must send with the
// answers that they get, and the output. No request leaves the process.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
	"github.com/stepmill/stepmill/internal/suggest"
)

// Tests are the tests of an integration.
type Tests struct {
	// Connection has the variables of the connection, for all tests.
	Connection map[string]string `json:"connection"`
	// Operations has the tests of each operation by its name.
	Operations map[string][]Test `json:"operations"`

	document *strictyaml.Document
}

// Test is a test of an operation.
type Test struct {
	Name string `json:"name"`
	// Input is that of the step. {$file: name} in it is a file of Files.
	Input json.RawMessage `json:"input"`
	// Files are the files in the input, by name.
	Files map[string]Content `json:"files"`
	// Interrupted is set if the process has died before, while it sent the first request.
	Interrupted bool       `json:"interrupted"`
	Exchanges   []Exchange `json:"exchanges"`
	// Output is that of the step, with a file as {$file: name, text: content}. Error is
	// given instead if the step fails.
	Output json.RawMessage `json:"output"`
	Error  *Failure        `json:"error"`
}

// Content is that of a file: text, or {size: number} for a large file whose bytes are zero.
type Content struct {
	Text string `json:"-"`
	Size int    `json:"size"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Content) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return strictjson.Decode(data, &c.Text)
	}
	type plain Content
	return strictjson.Decode(data, (*plain)(c))
}

func (c Content) bytes() []byte { return append([]byte(c.Text), make([]byte, c.Size)...) }

// Failure is how a step fails.
type Failure struct {
	Code        string `json:"code"`
	ServiceCode string `json:"service_code"`
	Message     string `json:"message"`
}

// Parse reads a file with tests. The error is an [integration.Errors].
func Parse(data []byte) (*Tests, error) {
	var out Tests
	var err error
	if out.document, err = integration.DecodeFile(data, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// Check returns what is wrong with the tests whatever the operations do.
func (t *Tests) Check(i *integration.Integration) integration.Errors {
	var out integration.Errors
	for _, name := range slices.Sorted(maps.Keys(t.Operations)) {
		if _, ok := i.FindOperation(name); !ok {
			out = append(out, t.errorf(jsonpointer.Of("operations", name), "%s has no operation %q%s", i.ID, name, suggest.Hint(name, i.OperationNames())))
		}
		seen := map[string]bool{}
		for n, test := range t.Operations[name] {
			at := jsonpointer.Of("operations", name, strconv.Itoa(n))
			switch {
			case test.Name == "":
				out = append(out, t.errorf(at, "needs a name"))
			case seen[test.Name]:
				out = append(out, t.errorf(at, "%s has another test with the name %q", name, test.Name))
			case (test.Output == nil) == (test.Error == nil):
				out = append(out, t.errorf(at, "needs either an output or an error"))
			}
			seen[test.Name] = true
		}
	}
	return out
}

func (t *Tests) errorf(pointer, format string, args ...any) *integration.Error {
	line, column, _ := t.document.KeyAt(pointer)
	return &integration.Error{Line: line, Column: column, Pointer: pointer, Message: fmt.Sprintf(format, args...)}
}

// Untested returns the operations of the integration that have no test.
func (t *Tests) Untested(i *integration.Integration) []string {
	return slices.DeleteFunc(i.OperationNames(), func(name string) bool { return len(t.Operations[name]) > 0 })
}

// Result is the outcome of a test.
type Result struct {
	Operation string
	Test      string
	Line      int // of the test in its file
	// Problem says what is wrong, in one or several lines. It is empty if the test has
	// passed.
	Problem string
}

// Run runs the tests of an integration for which pick returns true; nil picks all. Their
// requests are compared with those that were recorded, if any.
func Run(ctx context.Context, catalog *integration.Catalog, i *integration.Integration, tests *Tests, recordings *Recordings, pick func(operation, test string) bool) []Result {
	var out []Result
	for _, name := range slices.Sorted(maps.Keys(tests.Operations)) {
		if _, ok := i.FindOperation(name); !ok {
			continue // Check reports it
		}
		for n, test := range tests.Operations[name] {
			if pick != nil && !pick(name, test.Name) {
				continue
			}
			line, _, _ := tests.document.At(jsonpointer.Of("operations", name, strconv.Itoa(n)))
			result := Result{Operation: name, Test: test.Name, Line: line}
			server := &server{integration: i, variables: tests.Connection, exchanges: test.Exchanges, recordings: recordings}
			if err := test.run(ctx, catalog, server, name); err != nil {
				result.Problem = err.Error()
			}
			out = append(out, result)
		}
	}
	return out
}

// run runs one test.
func (t Test) run(ctx context.Context, catalog *integration.Catalog, server *server, name string) error {
	i, files := server.integration, newFiles()
	input, err := files.decode(t.Input, t.Files)
	if err != nil {
		return fmt.Errorf("input: %w", err)
	}
	hosts, err := i.Hosts(server.variables)
	if err != nil {
		return err
	}
	if server.recorded, err = server.recordings.of(name, t.Name); err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	tested, _ := i.FindOperation(name)
	entry := operation.NewActions(catalog, server).Entry(i, tested)
	checker, err := action.NewCatalog(entry)
	if err != nil {
		return err
	}
	if found := checker.Check(entry.Spec.Name, input, func(string) bool { return false }); len(found) > 0 {
		return inputError(found)
	}
	now := time.Date(2026, 11, 18, 9, 0, 0, 0, time.UTC) // always the same, because requests can have it
	output, err := execute(ctx, entry.Action, action.Request{
		Input: input, MaskedInput: input, Now: now, Began: now, Workspace: "test", IdempotencyKey: "run_1/step", Files: files, Interrupted: t.Interrupted,
		Connection: &action.Connection{Name: "test", Integration: i.ConnectedAs(), Variables: server.variables, Credential: credential{hosts}},
		Mask:       func(output map[string]any) (map[string]any, error) { return output, nil },
		Log:        func(action.Level, string) {},
	})
	if server.problem != nil {
		return server.problem
	}
	if err := t.compare(files, output, err); err != nil {
		return err
	}
	return server.left()
}

// inputError returns an error with the problems of an input.
func inputError(found []action.Problem) error {
	lines := []string{"the input is not valid:"}
	for _, problem := range found {
		lines = append(lines, "  "+label(problem.Pointer)+problem.Message)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// maxCalls is how often an action is called before the test fails.
const maxCalls = 1000

// execute calls an action until it is done.
func execute(ctx context.Context, a action.Action, req action.Request) (any, error) {
	for range maxCalls {
		result, err := a.Run(ctx, req)
		if err != nil || result.Checkpoint == nil {
			return result.Output, err
		}
		if err := req.Resume(*result.Checkpoint); err != nil {
			return nil, err
		}
		req.Interrupted = false // what comes next was never sent
	}
	return nil, errors.New("the operation does not end")
}

// compare compares the result of an operation with the expected one.
func (t Test) compare(files *files, output any, err error) error {
	failure, failed := errors.AsType[*action.Failure](err)
	switch {
	case err != nil && !failed:
		return err
	case t.Error == nil && failed:
		return fmt.Errorf("it failed: %s", failure.Error())
	case t.Error != nil && !failed:
		return errors.New("it succeeded, but should have failed")
	case t.Error != nil:
		return t.Error.compare(failure)
	}
	got, err := strictjson.Encode(files.describe(action.Object(output)))
	if err != nil {
		return err
	}
	return equalJSON("the output", got, t.Output)
}

// compare compares how a step has failed with what is expected. A message that is left out
// can be any.
func (want *Failure) compare(failure *action.Failure) error {
	code, _ := failure.Output["service_code"].(string)
	got := map[string]any{"code": failure.Code, "service_code": code}
	expected := map[string]any{"code": want.Code, "service_code": want.ServiceCode}
	if want.Message != "" {
		got["message"], expected["message"] = failure.Message, want.Message
	}
	return equalValues("the error", got, expected)
}
