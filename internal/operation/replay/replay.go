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
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

// Tests are the tests of an integration.
type Tests struct {
	// Connection has the variables of the connection, for all tests.
	Connection map[string]string `json:"connection"`
	// Operations has the tests of each operation by its name.
	Operations map[string][]Test `json:"operations"`
}

// Test is a test of an operation.
type Test struct {
	Name string `json:"name"`
	// Input is that of the step. {$file: name} in it is a file of Files.
	Input json.RawMessage `json:"input"`
	// Files are text files, by name.
	Files map[string]string `json:"files"`
	// Interrupted is set if the process has died before, while it sent the first request.
	Interrupted bool       `json:"interrupted"`
	Exchanges   []Exchange `json:"exchanges"`
	// Output is that of the step, with a file as {$file: name, text: content}. Error is
	// given instead if the step fails.
	Output json.RawMessage `json:"output"`
	Error  *Failure        `json:"error"`
}

// Failure is how a step fails.
type Failure struct {
	Code        string `json:"code"`
	ServiceCode string `json:"service_code"`
	Message     string `json:"message"`
}

// Parse reads a file with tests.
func Parse(data []byte) (*Tests, error) {
	document, err := strictyaml.Decode(data)
	if err != nil {
		return nil, err
	}
	var out Tests
	if err := strictjson.Decode(document.JSON, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// Run runs all tests of an integration, and compares their requests with those that were
// recorded, if any. It returns what is wrong, a sentence each, and which operations have no
// test.
func Run(ctx context.Context, catalog *integration.Catalog, i *integration.Integration, tests *Tests, recordings *Recordings) (problems, untested []string) {
	for _, name := range slices.Sorted(maps.Keys(tests.Operations)) {
		if _, ok := i.FindOperation(name); !ok {
			problems = append(problems, fmt.Sprintf("%s: there is no such operation", name))
			continue
		}
		for _, test := range tests.Operations[name] {
			server := &server{integration: i, variables: tests.Connection, exchanges: test.Exchanges, recordings: recordings}
			if err := test.run(ctx, catalog, server, name); err != nil {
				problems = append(problems, fmt.Sprintf("%s, %s: %v", name, test.Name, err))
			}
		}
	}
	for _, o := range i.Operations {
		if len(tests.Operations[o.Name]) == 0 {
			untested = append(untested, o.Name)
		}
	}
	return append(problems, recordings.problems(i, tests)...), untested
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
		return fmt.Errorf("input%s: %s", found[0].Pointer, found[0].Message)
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
		code, _ := failure.Output["service_code"].(string)
		if failure.Code != t.Error.Code || code != t.Error.ServiceCode || t.Error.Message != "" && failure.Message != t.Error.Message {
			return fmt.Errorf("it failed with %s, service_code %q", failure.Error(), code)
		}
		return nil
	}
	got, err := strictjson.Encode(files.describe(action.Object(output)))
	if err != nil {
		return err
	}
	return equalJSON("output", got, t.Output)
}
