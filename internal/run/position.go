package run

import (
	"math"
	"strconv"
	"strings"
)

// Position is how far somebody has followed a run. The commits of a run are
// numbered; what a commit wrote has an order too: first the lines of logs, then
// steps in the order they started. A step that is written again moves on to the
// commit that did.
type Position struct {
	Rev  int // the commit
	Line int // of its log lines, the last one seen
	Seq  int // of its steps, the last one seen
}

// every stands for the last line or step of a commit, whatever its number is.
const every = math.MaxInt32

// Beginning is the position of somebody who has seen nothing.
func Beginning() Position { return AfterCommit(-1) }

// AfterCommit is the position after all that a commit wrote.
func AfterCommit(rev int) Position { return Position{rev, every, every} }

// AfterLine is the position after a log line: the steps of its commit are still
// to come.
func AfterLine(rev, line int) Position { return Position{rev, line, -1} }

// afterStep is the position after a step that is not the last of its commit.
func afterStep(rev, seq int) Position { return Position{rev, every, seq} }

// String writes a position that AfterCommit or AfterLine made: 7, or 7.0 after
// the first line of commit 7.
func (p Position) String() string {
	if p.Line == every {
		return strconv.Itoa(p.Rev)
	}
	return strconv.Itoa(p.Rev) + "." + strconv.Itoa(p.Line)
}

// ParsePosition reads what String wrote.
func ParsePosition(text string) (Position, bool) {
	commit, line, inside := strings.Cut(text, ".")
	rev, ok := number(commit)
	if !ok || !inside {
		return AfterCommit(rev), ok
	}
	n, ok := number(line)
	return AfterLine(rev, n), ok
}

// number reads a number that is written in exactly one way.
func number(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n < every && strconv.Itoa(n) == text
}
