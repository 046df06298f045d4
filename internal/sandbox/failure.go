package sandbox

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// maxStack bounds the reported stack frames.
const maxStack = 5

// frameLinePattern matches a stack frame as the interpreter formats it:
// "	at name (code.js:3:8(4))".
var frameLinePattern = regexp.MustCompile(`(?m)^\tat (?:(.{1,100}) \()?` + regexp.QuoteMeta(fileName) + `:(\d{1,9}):(\d{1,9})\(`)

func (m *vm) failureOf(err error) *Failure {
	if overflow, ok := errors.AsType[*goja.StackOverflowError](err); ok {
		failure := &Failure{Kind: Exception, Message: "RangeError: calls are nested too deeply"}
		failure.addStack(overflow.Stack())
		return failure
	}
	if exception, ok := errors.AsType[*goja.Exception](err); ok {
		return m.thrownFailure(exception.Value())
	}
	return &Failure{Kind: Exception, Message: clip(err.Error(), MaxLine)}
}

// thrownFailure converts a thrown value: an Error with its position, or any value.
func (m *vm) thrownFailure(value goja.Value) *Failure {
	failure := &Failure{Kind: Exception, Message: "the script threw a value that cannot be shown"}
	// Converting a value to text may run code of the script.
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
		failure.addFrame(match[1], match[2], match[3])
	}
	return failure
}

// addStack adds the frames of the interpreter's own stack.
func (f *Failure) addStack(stack []goja.StackFrame) {
	for _, frame := range stack[:min(len(stack), maxStack)] {
		if at := frame.Position(); frame.SrcName() == fileName {
			f.addFrame(frame.FuncName(), strconv.Itoa(at.Line), strconv.Itoa(at.Column))
		}
	}
}

func (f *Failure) addFrame(name, lineText, columnText string) {
	line, _ := strconv.Atoi(lineText)
	column, _ := strconv.Atoi(columnText)
	line-- // the prologue has one line
	if len(f.Stack) == 0 {
		f.Line, f.Column = line, column
	}
	at := strconv.Itoa(line) + ":" + strconv.Itoa(column)
	if name != "" && name != "<anonymous>" {
		at = name + " (" + at + ")"
	}
	f.Stack = append(f.Stack, at)
}

// clip truncates text to a number of bytes, at a character boundary, and makes it
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
