package sandbox

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// maxStack is how many calls of a stack are told.
const maxStack = 5

// frameLinePattern is how the interpreter writes a call in the code:
// "	at name (code.js:3:8(4))".
var frameLinePattern = regexp.MustCompile(`(?m)^\tat (?:(.{1,100}) \()?` + regexp.QuoteMeta(fileName) + `:(\d{1,9}):(\d{1,9})\(`)

// failure tells an error of the interpreter.
func (m *machine) failure(err error) *Failure {
	if overflow, ok := errors.AsType[*goja.StackOverflowError](err); ok {
		failure := &Failure{Kind: Exception, Message: "RangeError: calls are nested too deeply"}
		failure.place(overflow.Stack())
		return failure
	}
	if exception, ok := errors.AsType[*goja.Exception](err); ok {
		return m.thrown(exception.Value())
	}
	return &Failure{Kind: Exception, Message: clip(err.Error(), MaxLine)}
}

// thrown tells what a script threw: an Error with its place, or any value.
func (m *machine) thrown(value goja.Value) *Failure {
	failure := &Failure{Kind: Exception, Message: "the script threw something that cannot be shown"}
	// Asking a value of the script for its text runs code of the script.
	stack := ""
	_ = m.Try(func() {
		failure.Message = clip(value.String(), MaxLine)
		if object, ok := value.(*goja.Object); ok {
			if text, ok := object.Get("stack").(goja.String); ok {
				stack = text.String()
			}
		}
	})
	for _, match := range frameLinePattern.FindAllStringSubmatch(clip(stack, 16*MaxLine), maxStack) {
		failure.add(match[1], match[2], match[3])
	}
	return failure
}

// place takes the stack of the interpreter itself.
func (f *Failure) place(stack []goja.StackFrame) {
	for _, frame := range stack[:min(len(stack), maxStack)] {
		if at := frame.Position(); frame.SrcName() == fileName {
			f.add(frame.FuncName(), strconv.Itoa(at.Line), strconv.Itoa(at.Column))
		}
	}
}

// add takes a call; the innermost one is the place of the failure.
func (f *Failure) add(name, lineText, columnText string) {
	line, _ := strconv.Atoi(lineText)
	column, _ := strconv.Atoi(columnText)
	line-- // the one of the prologue
	if len(f.Stack) == 0 {
		f.Line, f.Column = line, column
	}
	at := strconv.Itoa(line) + ":" + strconv.Itoa(column)
	if name != "" && name != "<anonymous>" {
		at = name + " (" + at + ")"
	}
	f.Stack = append(f.Stack, at)
}

// clip shortens a text to a number of bytes, between characters, and makes it
// valid UTF-8.
func clip(text string, size int) string {
	const sign = "…"
	if len(text) > size {
		cut := size - len(sign)
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + sign
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
