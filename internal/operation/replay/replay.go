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
	// Operations has the tests of each operation by its name, Hooks those of each hook, and
	// Triggers those of each trigger.
	Operations map[string][]Test        `json:"operations"`
	Hooks      map[string][]HookTest    `json:"hooks"`
	Triggers   map[string][]TriggerTest `json:"triggers"`

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

// Bytes returns the bytes of the file.
func (c Content) Bytes() []byte { return append([]byte(c.Text), make([]byte, c.Size)...) }

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
		names := uniqueNames{}
		for n, test := range t.Operations[name] {
			at := jsonpointer.Of("operations", name, strconv.Itoa(n))
			if problem := names.add(name, test.Name); problem != "" {
				out = append(out, t.errorf(at, "%s", problem))
			} else if (test.Output == nil) == (test.Error == nil) {
				out = append(out, t.errorf(at, "needs either an output or an error"))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Hooks)) {
		if _, ok := i.FindHook(name); !ok {
			out = append(out, t.errorf(jsonpointer.Of("hooks", name), "%s has no hook %q", i.ID, name))
		}
		names := uniqueNames{}
		for n, test := range t.Hooks[name] {
			if problem := names.add(name, test.Name); problem != "" {
				out = append(out, t.errorf(jsonpointer.Of("hooks", name, strconv.Itoa(n)), "%s", problem))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Triggers)) {
		if _, ok := i.FindTrigger(name); !ok {
			out = append(out, t.errorf(jsonpointer.Of("triggers", name), "%s has no trigger %q%s", i.ID, name, suggest.Hint(name, i.TriggerNames())))
		}
		names := uniqueNames{}
		for n, test := range t.Triggers[name] {
			if problem := names.add(name, test.Name); problem != "" {
				out = append(out, t.errorf(jsonpointer.Of("triggers", name, strconv.Itoa(n)), "%s", problem))
			}
		}
	}
	return out
}

// uniqueNames are the names of the tests of an operation or a trigger.
type uniqueNames map[string]bool

// add returns what is wrong with the name of a test, or "".
func (u uniqueNames) add(of, name string) string {
	switch {
	case name == "":
		return "needs a name"
	case u[name]:
		return fmt.Sprintf("%s has another test with the name %q", of, name)
	}
	u[name] = true
	return ""
}

func (t *Tests) errorf(pointer, format string, args ...any) *integration.Error {
	line, column, _ := t.document.KeyAt(pointer)
	return &integration.Error{Line: line, Column: column, Pointer: pointer, Message: fmt.Sprintf(format, args...)}
}

// Untested returns the operations, the hooks and the triggers of the integration that have
// no test, as pointers into its manifest. An operation that a poll uses is tested by its
// trigger.
func (t *Tests) Untested(i *integration.Integration) []string {
	tested := map[string]bool{}
	var out []string
	for _, trigger := range i.Triggers() {
		if len(t.Triggers[trigger.Name]) == 0 {
			out = append(out, jsonpointer.Of("triggers", trigger.Name))
		} else if trigger.Poll != nil {
			tested[trigger.Poll.Operation.Name] = true
		}
	}
	for _, hook := range i.Hooks() {
		if len(t.Hooks[hook.Name]) == 0 {
			out = append(out, jsonpointer.Of("hooks", hook.Name))
		}
	}
	for _, o := range i.Operations() {
		if len(t.Operations[o.Name]) == 0 && !(o.Hidden && tested[o.Name]) {
			out = append(out, jsonpointer.Of("operations", o.Name))
		}
	}
	return out
}

// Result is the outcome of a test.
type Result struct {
	// Of is the operation, the trigger or the hook.
	Of   string
	Test string
	Line int // of the test in its file
	// Problem says what is wrong, in one or several lines. It is empty if the test has
	// passed.
	Problem string
}

// Run runs the tests of an integration for which pick returns true; nil picks all. Their
// requests are compared with those that were recorded, if any.
func Run(ctx context.Context, catalog *integration.Catalog, i *integration.Integration, tests *Tests, recordings *Recordings, pick func(of, test string) bool) []Result {
	out := append(tests.runTriggers(ctx, catalog, i, recordings, pick), tests.runHooks(ctx, catalog, i, recordings, pick)...)
	for _, name := range slices.Sorted(maps.Keys(tests.Operations)) {
		if _, ok := i.FindOperation(name); !ok {
			continue // Check reports it
		}
		for n, test := range tests.Operations[name] {
			if pick != nil && !pick(name, test.Name) {
				continue
			}
			line, _, _ := tests.document.At(jsonpointer.Of("operations", name, strconv.Itoa(n)))
			result := Result{Of: name, Test: test.Name, Line: line}
			server := tests.serve(i, test.Exchanges, recordings)
			if err := test.run(ctx, catalog, server, name); err != nil {
				result.Problem = err.Error()
			}
			out = append(out, result)
		}
	}
	return out
}

func (t *Tests) serve(i *integration.Integration, exchanges []Exchange, recordings *Recordings) *server {
	return &server{integration: i, variables: t.Connection, exchanges: exchanges, recordings: recordings}
}

// testTime is the time of all tests, because requests can have it.
var testTime = time.Date(2026, 11, 18, 9, 0, 0, 0, time.UTC)

func (t Test) run(ctx context.Context, catalog *integration.Catalog, server *server, name string) error {
	i, files := server.integration, &files{map[string][]byte{}}
	input, err := files.decode(t.Input, t.Files)
	if err != nil {
		return fmt.Errorf("input: %w", err)
	}
	connection, err := server.connection()
	if err != nil {
		return err
	}
	if server.recorded, err = server.recordings.of(name, t.Name); err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	tested, _ := i.FindOperation(name)
	entry := operation.NewActions(catalog, server).Entry(i, tested)
	if err := checkInput(entry, input); err != nil {
		return err
	}
	output, err := execute(ctx, entry.Action, action.Request{
		Input: input, MaskedInput: input, Now: testTime, Began: testTime, Workspace: "test", IdempotencyKey: "run_1/step", Files: files, Interrupted: t.Interrupted,
		Connection: &connection,
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

func (s *server) connection() (action.Connection, error) {
	hosts, err := s.integration.Hosts(s.variables)
	return action.Connection{Name: "test", Integration: s.integration.ConnectedAs(), Variables: s.variables, Credential: credential{hosts}}, err
}

func checkInput(of action.Entry, input map[string]any) error {
	checker, err := action.NewCatalog(of)
	if err != nil {
		return err
	}
	found := checker.Check(of.Spec.Name, input, func(string) bool { return false })
	if len(found) == 0 {
		return nil
	}
	lines := []string{"the input is not valid:"}
	for _, problem := range found {
		lines = append(lines, "  "+label(problem.Pointer)+problem.Message)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// maxCalls is how often an action is called before the test fails.
const maxCalls = 1000

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

func (t Test) compare(files *files, output any, err error) error {
	if err != nil || t.Error != nil {
		return t.Error.compare(err)
	}
	got, err := strictjson.Encode(files.describe(action.Object(output)))
	if err != nil {
		return err
	}
	return t.CompareOutput(got)
}

// CompareOutput compares the output of a step, in which files are described like those of
// the test, with the expected one.
func (t Test) CompareOutput(got json.RawMessage) error { return equalJSON("the output", got, t.Output) }

// compare compares how a step or a poll has ended with the failure that is expected, nil for
// none. A message that is left out can be any.
func (want *Failure) compare(err error) error {
	failure, failed := errors.AsType[*action.Failure](err)
	switch {
	case err != nil && !failed:
		return err
	case want == nil && failed:
		return fmt.Errorf("it failed: %s", failure.Error())
	case want != nil && !failed:
		return errors.New("it succeeded, but should have failed")
	case want == nil:
		return nil
	}
	code, _ := failure.Output["service_code"].(string)
	got := map[string]any{"code": failure.Code, "service_code": code}
	expected := map[string]any{"code": want.Code, "service_code": want.ServiceCode}
	if want.Message != "" {
		got["message"], expected["message"] = failure.Message, want.Message
	}
	return equalValues("the error", got, expected)
}
