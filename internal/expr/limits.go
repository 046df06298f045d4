package expr

// Limits at compile time. They are checked before any work that grows with the
// input.
const (
	maxSource      = 4 << 10   // bytes of one expression
	maxDepth       = 50        // nesting of one expression
	maxNodes       = 1000      // operators, names and literals of one expression
	maxTemplate    = 1 << 20   // bytes of one string with expressions
	maxParts       = 500       // expressions in one string
	maxExpressions = 2000      // expressions in one value
	maxErrors      = 100       // problems reported at once
	maxPattern     = 512       // bytes of a regular expression
	maxProgram     = 500       // instructions of the regular expressions in one expression
	maxPatterns    = 2000      // and of those in one value
	maxRange       = 100_000   // elements of from..to
	maxNesting     = 100       // nesting of a value that is walked
	maxYear        = 9999      // RFC 3339 has four digits
	maxDynamic     = 16        // patterns kept compiled within one evaluation
	unixLimit      = 253402300 // thousands of seconds from 1970 to the year 10000
)

// The default [Budget]. All workspaces share the process, so one evaluation must neither occupy a
// processor for long nor take a noticeable part of the memory.
const (
	DefaultSteps  = 1_000_000
	DefaultMemory = 8 << 20
	DefaultResult = 1 << 20
)

// Budget bounds one evaluation. A zero field means its default.
type Budget struct {
	// Steps bounds the work: about one step per operator, per visited element and
	// per 32 bytes of text read.
	Steps int
	// Memory bounds the total bytes that the evaluation allocates, including those
	// it no longer uses.
	Memory int
	// Result bounds the size of the result: the bytes of a string, or of any other
	// value as compact JSON.
	Result int
	// Spent, if not nil, is increased by the steps used, so that several evaluations
	// can share a limit.
	Spent *int
}

func (b Budget) orDefault() Budget {
	if b.Steps == 0 {
		b.Steps = DefaultSteps
	}
	if b.Memory == 0 {
		b.Memory = DefaultMemory
	}
	if b.Result == 0 {
		b.Result = DefaultResult
	}
	return b
}
