// Package sandbox runs untrusted JavaScript: each script in a child process of
// the same binary, with limits on time and memory and no access to the host. It
// owns both sides: the server's pool of child processes, and the loop that a
// child runs.
package sandbox

import (
	"encoding/json"
	"errors"
	"time"
)

// Limits of what server and child exchange.
const (
	MaxCode   = 256 << 10
	MaxInput  = 4 << 20
	MaxOutput = 4 << 20
	// MaxLines bounds the lines that a script can log, and MaxLine the bytes of one
	// line. MaxLine is longer than what is stored, so that no secret is cut before
	// it is masked.
	MaxLines = 1000
	MaxLine  = 8 << 10
	// MaxDepth bounds the nesting depth of a result.
	MaxDepth = 64
)

// Script is a script to run.
type Script struct {
	// Code is the body of a function; its parameter is called input.
	Code string
	// Input is JSON; nil means null.
	Input json.RawMessage
	Files Files
	// Limit bounds the run time once a child process is available; 0 means that
	// only the context bounds it.
	Limit time.Duration
}

// Outcome is the result of a script. A script that failed may have logged lines.
type Outcome struct {
	// Output is the returned value as JSON.
	Output json.RawMessage
	Lines  []Line
}

// Line is a line that a script logged. Its level is the name of the console
// function: debug, info, warn or error.
type Line struct {
	Level string `json:"level"`
	Text  string `json:"text"`
}

// Kind is the reason a script failed.
type Kind string

// The kinds.
const (
	// Syntax means that the code does not compile, Exception that it threw.
	Syntax    Kind = "syntax"
	Exception Kind = "exception"
	// Timeout and Memory mean that the script exceeded a limit.
	Timeout Kind = "timeout"
	Memory  Kind = "memory"
	// InputTooLarge refers to the code or the input, TooLarge to the result.
	InputTooLarge Kind = "input_too_large"
	TooLarge      Kind = "too_large"
	// Crashed means that the script crashed its process. Lost means that the
	// process ended for another reason, so the same script may succeed on retry.
	Crashed Kind = "crashed"
	Lost    Kind = "lost"
)

// Failure is the error of a failed script.
type Failure struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	// Line and Column are a position in the code, from 1; 0 if unknown.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Stack has the innermost frames of the call stack.
	Stack []string `json:"stack,omitempty"`
}

func (f *Failure) Error() string { return f.Message }

// ErrClosed is returned by a closed pool.
var ErrClosed = errors.New("the sandbox is closed")
