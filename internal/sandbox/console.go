package sandbox

import (
	"fmt"
	"io"
	"strings"

	"github.com/dop251/goja"
)

// console sends the lines of a script on their way at once, so that they are
// there also if the script comes to a bad end.
type console struct {
	out  io.Writer
	sent int
}

// levels are the functions of the console and what their lines are.
var levels = map[string]string{"log": "info", "info": "info", "warn": "warn", "error": "error", "debug": "debug"}

// fullText is the last line of a log that has no room for more.
var fullText = fmt.Sprintf("the log is full: it has %d lines, and the rest is left out", MaxLines)

func (m *machine) addConsole() {
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

func (m *machine) print(level string, arguments []goja.Value) {
	switch c := &m.console; {
	case c.sent > MaxLines:
		return
	case c.sent == MaxLines:
		c.send(Line{Level: "warn", Text: fullText})
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

// show gives the text of a value: objects as JSON where that is possible.
func (m *machine) show(value goja.Value) string {
	object, ok := value.(*goja.Object)
	if ok && object.ClassName() != "Error" {
		if written, err := m.stringify(goja.Undefined(), value); err == nil {
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
	frame, err := encodeFrame(frameLine, line)
	if err != nil {
		return // text can always be encoded
	}
	// If the server does not listen any more, this process ends anyway.
	_, _ = c.out.Write(frame)
}
