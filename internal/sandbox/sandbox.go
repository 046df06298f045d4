// Package sandbox runs JavaScript that nobody vouches for: each script in a
// child process of our own binary, held to a time and an amount of memory,
// with nothing of the host in reach. It owns both ends: the pool of children
// that the server keeps, and what a child does. What a script is for is not
// its business.
package sandbox

import (
	"encoding/json"
	"errors"
	"time"
)

// What may cross the border between server and child.
const (
	MaxCode   = 256 << 10
	MaxInput  = 4 << 20
	MaxOutput = 4 << 20
	// MaxLines is how many lines a script can log, MaxLine how long one is: longer
	// than what is kept, so that no secret is cut before it is masked.
	MaxLines = 1000
	MaxLine  = 8 << 10
	// MaxDepth is how deeply a result may be nested.
	MaxDepth = 64
)

// Script is a piece of JavaScript to run.
type Script struct {
	// Code is the body of a function; its parameter is called input.
	Code string
	// Input is JSON; nil is null.
	Input json.RawMessage
	// Limit is how long the script may run once it has a child; 0 leaves that
	// to the context alone.
	Limit time.Duration
}

// Outcome is what came of a script. One that failed may have logged too.
type Outcome struct {
	// Output is what it returned, as JSON.
	Output json.RawMessage
	Lines  []Line
}

// Line is what a script wrote to its console. The level is the name of the
// function: debug, info, warn or error.
type Line struct {
	Level string `json:"level"`
	Text  string `json:"text"`
}

// Kind says why a script failed.
type Kind string

// The kinds.
const (
	// Syntax is code that does not compile, Exception one that threw.
	Syntax    Kind = "syntax"
	Exception Kind = "exception"
	// Timeout and Memory are the limits.
	Timeout Kind = "timeout"
	Memory  Kind = "memory"
	// InputTooLarge is about code or input, TooLarge about the result.
	InputTooLarge Kind = "input_too_large"
	TooLarge      Kind = "too_large"
	// Crashed is a child that died under the script, Lost one that died for a
	// reason outside: the same script may well succeed.
	Crashed Kind = "crashed"
	Lost    Kind = "lost"
)

// Failure is how a script failed.
type Failure struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	// Line and Column are a place in the code, from 1; 0 if there is none.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Stack has the innermost calls.
	Stack []string `json:"stack,omitempty"`
}

func (f *Failure) Error() string { return f.Message }

// ErrClosed is what a closed pool answers.
var ErrClosed = errors.New("the sandbox is closed")
