package run

import (
	"math"
	"strconv"
	"strings"
)

// Position is how far a client has followed a run. The commits of a run are
// numbered. Within a commit, log lines come first, then steps in the order in which
// they started. A step that is written again moves to the later commit.
type Position struct {
	Rev  int // the commit
	Line int // the last log line seen
	Seq  int // the last step seen
}

// every is a number that is greater than those of all lines and steps.
const every = math.MaxInt32

// Beginning returns the position before all changes.
func Beginning() Position { return AfterCommit(-1) }

// AfterCommit returns the position after everything that a commit wrote.
func AfterCommit(rev int) Position { return Position{rev, every, every} }

// AfterLine returns the position after a log line and before the steps of its
// commit.
func AfterLine(rev, line int) Position { return Position{rev, line, -1} }

// afterStep returns the position after a step that is not the last of its commit.
func afterStep(rev, seq int) Position { return Position{rev, every, seq} }

// String formats a position made by AfterCommit or AfterLine: 7, or 7.0 after the
// first line of commit 7.
func (p Position) String() string {
	if p.Line == every {
		return strconv.Itoa(p.Rev)
	}
	return strconv.Itoa(p.Rev) + "." + strconv.Itoa(p.Line)
}

// ParsePosition parses the result of String.
func ParsePosition(text string) (Position, bool) {
	commit, line, inside := strings.Cut(text, ".")
	rev, ok := number(commit)
	if !ok || !inside {
		return AfterCommit(rev), ok
	}
	n, ok := number(line)
	return AfterLine(rev, n), ok
}

// number parses a number in its canonical form.
func number(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n < every && strconv.Itoa(n) == text
}
