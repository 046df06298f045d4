package sandbox

import (
	"fmt"
	"strings"

	"github.com/dop251/goja"
)

// console sends each line of a script at once, so that no line is lost if the
// script crashes.
type console struct {
	host host
	sent int
}

var levels = map[string]string{"log": "info", "info": "info", "warn": "warn", "error": "error", "debug": "debug"}

var logFullText = fmt.Sprintf("the log is full: lines after the first %d are dropped", MaxLines)

func (m *vm) addConsole() {
	object := m.NewObject()
	for name, level := range levels {
		// Setting a property of a new object cannot fail.
		_ = object.Set(name, func(call goja.FunctionCall) goja.Value {
			m.print(level, call.Arguments)
			return goja.Undefined()
		})
	}
	_ = m.Set("console", object)
}

func (m *vm) print(level string, arguments []goja.Value) {
	switch c := &m.console; {
	case c.sent > MaxLines:
		return
	case c.sent == MaxLines:
		c.send(Line{Level: "warn", Text: logFullText})
		return
	}
	var line strings.Builder
	for i, argument := range arguments {
		if i > 0 {
			line.WriteByte(' ')
		}
		if line.Len() > MaxLine {
			break
		}
		line.WriteString(m.show(argument))
	}
	m.console.send(Line{Level: level, Text: clip(line.String(), MaxLine)})
}

// show returns the text of a value, for objects as JSON if possible.
func (m *vm) show(value goja.Value) string {
	object, ok := value.(*goja.Object)
	if ok && object.ClassName() != "Error" {
		if written, err := m.stringify(goja.Undefined(), value, m.replaceFiles(m.describe)); err == nil {
			if text, ok := written.(goja.String); ok {
				return text.String()
			}
		}
	}
	text := "(cannot be shown)"
	_ = m.Try(func() { text = value.String() })
	return text
}

func (c *console) send(line Line) {
	c.sent++
	c.host.send(frameLine, line)
}
