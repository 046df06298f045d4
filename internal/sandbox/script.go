package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
)

const (
	// fileName is the name of the script in stack traces.
	fileName = "code.js"
	// The code is the body of a function, on separate lines: its columns are right
	// and its line numbers are off by one.
	prologue = "(async function (input) {\n"
	epilogue = "\n})"
	// maxCalls bounds the depth of nested calls.
	maxCalls = 4000
)

// compile compiles the code to a program that evaluates to the function.
func compile(code string) (*goja.Program, *Failure) {
	// Source maps would be read from files that the code names.
	tree, err := parser.ParseFile(nil, fileName, prologue+code+epilogue, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, syntaxFailure(code, err)
	}
	if !isFunction(tree) {
		return nil, &Failure{Kind: Syntax, Message: "SyntaxError: there is an extra closing bracket"}
	}
	program, err := goja.CompileAST(tree, false)
	if err != nil {
		return nil, syntaxFailure(code, err)
	}
	return program, nil
}

// isFunction reports whether the program is a single function. Code that closes
// the function and continues after it is not.
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
	// A missing token at the end is reported in the epilogue.
	if lines := strings.Count(code, "\n") + 1; failure.Line > lines {
		failure.Line, failure.Column = lines, 0
	}
	return failure
}

type vm struct {
	*goja.Runtime
	// The original functions, which the script cannot change.
	parse, stringify goja.Callable
	console          console
	files            files
}

func newVM(h host) *vm {
	m := &vm{Runtime: goja.New(), console: console{host: h}, files: files{host: h, of: map[*goja.Object]*file{}}}
	m.SetMaxCallStackSize(maxCalls)
	m.SetParserOptions(parser.WithDisableSourceMaps)
	builtin := m.Get("JSON").ToObject(m.Runtime)
	m.parse, _ = goja.AssertFunction(builtin.Get("parse"))
	m.stringify, _ = goja.AssertFunction(builtin.Get("stringify"))
	m.addConsole()
	m.addFileClass()
	return m
}

func run(r request, h host) reply {
	program, failure := compile(r.Code)
	if failure != nil {
		return reply{Failure: failure}
	}
	m := newVM(h)
	value, failure := m.call(program, r)
	if failure != nil {
		return reply{Failure: failure}
	}
	output, failure := m.export(value, r.Marker)
	if failure == nil {
		failure = m.files.sendReturned()
	}
	return reply{Output: output, Failure: failure}
}

// call calls the function and returns the value that its promise resolves to.
func (m *vm) call(program *goja.Program, r request) (goja.Value, *Failure) {
	value, err := m.RunProgram(program)
	if err != nil {
		return nil, m.failureOf(err)
	}
	function, ok := goja.AssertFunction(value)
	if !ok {
		return nil, &Failure{Kind: Crashed, Message: "the code is not a function"}
	}
	argument, err := m.input(r)
	if err != nil {
		return nil, m.failureOf(err)
	}
	returned, err := function(goja.Undefined(), argument)
	if err != nil {
		return nil, m.failureOf(err)
	}
	promise, ok := returned.Export().(*goja.Promise)
	if !ok {
		return nil, &Failure{Kind: Crashed, Message: "the code did not return a promise"}
	}
	switch promise.State() {
	case goja.PromiseStateFulfilled:
		return promise.Result(), nil
	case goja.PromiseStateRejected:
		return nil, m.thrownFailure(promise.Result())
	default:
		return nil, &Failure{Kind: Exception, Message: "the script awaits a promise that never settles: scripts have no timers and no network"}
	}
}

func (m *vm) input(r request) (goja.Value, error) {
	text := "null"
	if r.Input != nil {
		text = string(r.Input)
	}
	if len(r.Files) == 0 {
		return m.parse(goja.Undefined(), m.ToValue(text))
	}
	return m.parse(goja.Undefined(), m.ToValue(text), m.reviveFiles(r.Marker, r.Files))
}

// export encodes a value as JSON with JSON.stringify.
func (m *vm) export(value goja.Value, marker string) (json.RawMessage, *Failure) {
	if goja.IsUndefined(value) {
		return json.RawMessage("null"), nil
	}
	written, err := m.stringify(goja.Undefined(), value, m.replaceFiles(func(f *file) goja.Value {
		if marker == "" {
			panic(m.NewTypeError("files cannot be returned here"))
		}
		return m.ToValue(marker + strconv.Itoa(m.files.indexOf(f)))
	}))
	if err != nil {
		failure := m.failureOf(err)
		failure.Message = clip("the result cannot be encoded as JSON: "+failure.Message, MaxLine)
		return nil, failure
	}
	text, ok := written.(goja.String)
	if !ok {
		return nil, &Failure{Kind: Exception, Message: "the result cannot be encoded as JSON: it is a function or a symbol"}
	}
	if text.Length() > MaxOutput {
		return nil, tooLarge(text.Length())
	}
	output := text.String()
	if len(output) > MaxOutput {
		return nil, tooLarge(len(output))
	}
	if nestingDepth(output) > MaxDepth {
		return nil, &Failure{Kind: TooLarge, Message: fmt.Sprintf("the result is nested more than %d levels deep", MaxDepth)}
	}
	return json.RawMessage(output), nil
}

func tooLarge(size int) *Failure {
	return &Failure{Kind: TooLarge, Message: fmt.Sprintf("the result has %d bytes; the limit is %d", size, MaxOutput)}
}

func nestingDepth(text string) int {
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
