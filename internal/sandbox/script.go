package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
)

const (
	// fileName is what the script is called in stacks.
	fileName = "code.js"
	// The code is the body of a function, on lines of its own: so its columns
	// are right and its lines are one too many.
	prologue = "(async function (input) {\n"
	epilogue = "\n})"
	// maxCalls is how deeply calls can be nested.
	maxCalls = 4000
)

// compile turns the code into a program whose value is the function.
func compile(code string) (*goja.Program, *Failure) {
	// A source map would be read from a file that the code names.
	tree, err := parser.ParseFile(nil, fileName, prologue+code+epilogue, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, syntaxFailure(code, err)
	}
	if !isFunction(tree) {
		return nil, &Failure{Kind: Syntax, Message: "SyntaxError: there is a closing bracket too many"}
	}
	program, err := goja.CompileAST(tree, false)
	if err != nil {
		return nil, syntaxFailure(code, err)
	}
	return program, nil
}

// isFunction tells whether the program is the one function, and not code that
// has closed it and gone on behind it.
func isFunction(tree *ast.Program) bool {
	if len(tree.Body) != 1 {
		return false
	}
	statement, ok := tree.Body[0].(*ast.ExpressionStatement)
	if !ok {
		return false
	}
	_, ok = statement.Expression.(*ast.FunctionLiteral)
	return ok
}

func syntaxFailure(code string, err error) *Failure {
	failure := &Failure{Kind: Syntax, Message: err.Error()}
	var (
		list     parser.ErrorList
		compiler *goja.CompilerSyntaxError
	)
	switch {
	case errors.As(err, &list) && len(list) > 0:
		failure.Message = list[0].Message
		failure.Line, failure.Column = list[0].Position.Line, list[0].Position.Column
	case errors.As(err, &compiler) && compiler.File != nil:
		at := compiler.File.Position(compiler.Offset)
		failure.Message, failure.Line, failure.Column = compiler.Message, at.Line, at.Column
	}
	failure.Message = "SyntaxError: " + clip(failure.Message, MaxLine)
	failure.Line--
	// What is missing at the end is found missing behind it.
	if lines := strings.Count(code, "\n") + 1; failure.Line > lines {
		failure.Line, failure.Column = lines, 0
	}
	return failure
}

// machine is one script in a runtime of its own. Nothing of it outlives the
// script.
type machine struct {
	*goja.Runtime
	// The two functions as they were before the script could change them.
	parse, stringify goja.Callable
	console          console
}

func newMachine(out io.Writer) *machine {
	m := &machine{Runtime: goja.New(), console: console{out: out}}
	m.SetMaxCallStackSize(maxCalls)
	m.SetParserOptions(parser.WithDisableSourceMaps)
	builtin := m.Get("JSON").ToObject(m.Runtime)
	m.parse, _ = goja.AssertFunction(builtin.Get("parse"))
	m.stringify, _ = goja.AssertFunction(builtin.Get("stringify"))
	m.addConsole()
	return m
}

// run runs a script to its end.
func run(r request, out io.Writer) reply {
	program, failure := compile(r.Code)
	if failure != nil {
		return reply{Failure: failure}
	}
	m := newMachine(out)
	value, failure := m.call(program, r.Input)
	if failure != nil {
		return reply{Failure: failure}
	}
	output, failure := m.export(value)
	return reply{Output: output, Failure: failure}
}

// call calls the function and gives what it returned in the end: an async
// function is at its end when everything it waited for is.
func (m *machine) call(program *goja.Program, input json.RawMessage) (goja.Value, *Failure) {
	value, err := m.RunProgram(program)
	if err != nil {
		return nil, m.failure(err)
	}
	function, ok := goja.AssertFunction(value)
	if !ok {
		return nil, &Failure{Kind: Crashed, Message: "the code is not a function"}
	}
	if input == nil {
		input = json.RawMessage("null")
	}
	argument, err := m.parse(goja.Undefined(), m.ToValue(string(input)))
	if err != nil {
		return nil, m.failure(err)
	}
	returned, err := function(goja.Undefined(), argument)
	if err != nil {
		return nil, m.failure(err)
	}
	promise, ok := returned.Export().(*goja.Promise)
	if !ok {
		return nil, &Failure{Kind: Crashed, Message: "the code did not give a promise"}
	}
	switch promise.State() {
	case goja.PromiseStateFulfilled:
		return promise.Result(), nil
	case goja.PromiseStateRejected:
		return nil, m.thrown(promise.Result())
	default:
		return nil, &Failure{Kind: Exception, Message: "the script waits for a promise that nothing settles: there are no timers and no calls to the outside"}
	}
}

// export writes a value as JSON, by the rules of JSON.stringify.
func (m *machine) export(value goja.Value) (json.RawMessage, *Failure) {
	if goja.IsUndefined(value) {
		return json.RawMessage("null"), nil
	}
	written, err := m.stringify(goja.Undefined(), value)
	if err != nil {
		failure := m.failure(err)
		failure.Message = clip("the result cannot be written as JSON: "+failure.Message, MaxLine)
		return nil, failure
	}
	text, ok := written.(goja.String)
	if !ok {
		return nil, &Failure{Kind: Exception, Message: "the result cannot be written as JSON: it is a function or a symbol"}
	}
	if text.Length() > MaxOutput {
		return nil, tooLarge(text.Length())
	}
	output := text.String()
	if len(output) > MaxOutput {
		return nil, tooLarge(len(output))
	}
	if nesting(output) > MaxDepth {
		return nil, &Failure{Kind: TooLarge, Message: fmt.Sprintf("the result is nested more than %d deep", MaxDepth)}
	}
	return json.RawMessage(output), nil
}

func tooLarge(size int) *Failure {
	return &Failure{Kind: TooLarge, Message: fmt.Sprintf("the result has %d bytes; at most %d can be returned", size, MaxOutput)}
}

// nesting is how deeply JSON is nested.
func nesting(text string) int {
	deepest, depth, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return deepest
}
