package expr

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"
)

// regex is a compiled pattern with its cost. Go's engine takes time linear in the
// text times the length of the program, so both are charged.
type regex struct {
	re *regexp.Regexp
	// later returns the pattern for the matches after the first one. It is compiled
	// when it is needed.
	later func() *regexp.Regexp
	// laterSteps are the steps to compile it, until they are charged. They are 0 for
	// a literal pattern, which evaluations share.
	laterSteps int
	// program is an upper bound of the number of instructions; slow ones count more
	// than once.
	program int
}

const (
	maxProperties  = 16  // \p{…} in a pattern: each is a table of hundreds of ranges
	maxFoldRanges  = 4   // wide ranges of a case-insensitive pattern
	patternPerStep = 4   // bytes × instructions matched in the time of one step
	patternCompile = 500 // steps to compile any pattern, 20 more per instruction
)

// compilePattern compiles a regular expression. Some constructs are slow to
// parse, and repetition turns a short pattern into a long program, so it checks
// both first.
func compilePattern(pattern string) (*regex, error) {
	if len(pattern) > maxPattern {
		return nil, failf("the pattern is longer than %d bytes", maxPattern)
	}
	if slowToParse(pattern) {
		return nil, failf("the pattern uses too many large character classes")
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, failf("the pattern is not a regular expression: %s", patternProblem(err))
	}
	program := programSize(tree)
	if program > maxProgram {
		return nil, failf("the pattern is too complex")
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, failf("the pattern is not a regular expression: %s", patternProblem(err))
	}
	later := sync.OnceValue(func() *regexp.Regexp { return laterPattern(tree) })
	return &regex{re: re, later: later, program: program}, nil
}

// patternProblem returns the error without the quoted part of the pattern, which
// may come from data.
func patternProblem(err error) string {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return e.Code.String()
	}
	return "syntax error"
}

func slowToParse(pattern string) bool {
	if strings.Count(pattern, `\p`)+strings.Count(pattern, `\P`) > maxProperties {
		return true
	}
	wide := 0
	for i := 0; i < len(pattern)-1; i++ {
		next := pattern[i+1]
		if pattern[i] == '-' && (next >= utf8.RuneSelf || next == '\\') {
			wide++
		}
	}
	return wide > maxFoldRanges && strings.Contains(pattern, "(?")
}

// programSize returns an upper bound of the instructions that tree compiles to,
// without expanding repetitions.
func programSize(tree *syntax.Regexp) int {
	size := 0
	for _, sub := range tree.Sub {
		size += programSize(sub)
		if size > maxProgram {
			return size
		}
	}
	switch tree.Op {
	case syntax.OpLiteral:
		return len(tree.Rune)
	case syntax.OpCharClass:
		return 1 + min(2, len(tree.Rune)/8)
	case syntax.OpRepeat:
		return (size + 1) * max(1, tree.Min+1, tree.Max)
	case syntax.OpCapture:
		return size + 2
	case syntax.OpAlternate:
		return size + len(tree.Sub)
	case syntax.OpConcat:
		return size
	}
	return size + 1
}

func (r *regex) match(m *evaluation, text string) (bool, error) {
	if err := m.spend(1 + len(text)*(r.program+2)/patternPerStep); err != nil {
		return false, err
	}
	return r.re.MatchString(text), nil
}

// pattern compiles a computed pattern, once per evaluation.
func (m *evaluation) pattern(text string) (*regex, error) {
	if r, ok := m.patterns[text]; ok {
		return r, nil
	}
	if err := m.spend(patternCompile); err != nil {
		return nil, err
	}
	r, err := compilePattern(text)
	if err != nil {
		return nil, err
	}
	if err := m.spend(20 * r.program); err != nil {
		return nil, err
	}
	r.laterSteps = patternCompile + 20*r.program
	if m.patterns == nil || len(m.patterns) >= maxDynamic {
		m.patterns = make(map[string]*regex)
	}
	m.patterns[text] = r
	return r, nil
}
