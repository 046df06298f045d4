package codejs

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/sandbox"
)

// maxKnown is how many verdicts are kept.
const maxKnown = 4096

// checker compiles scripts before they run. Code is compiled in the sandbox
// only: hostile code can cost a compiler as much as it can cost an interpreter.
// The same code is asked about again whenever its workflow is saved, so verdicts
// are kept.
type checker struct {
	runner Runner
	mu     sync.Mutex
	known  map[[sha256.Size]byte]*sandbox.Failure
}

func newChecker(runner Runner) *checker {
	return &checker{runner: runner, known: map[[sha256.Size]byte]*sandbox.Failure{}}
}

func (c *checker) check(with map[string]any) []action.Problem {
	code, ok := with["code"].(string)
	if !ok {
		return nil // an expression
	}
	failure := c.verdict(code)
	if failure == nil {
		return nil
	}
	problem := action.Problem{Pointer: "/code", Message: describe(failure)}
	switch failure.Kind {
	case sandbox.Timeout, sandbox.Memory:
		problem.Message = "is too complex to be compiled"
	}
	return []action.Problem{problem}
}

// verdict is nil for code that compiles, and if nobody can tell: then the run
// will.
func (c *checker) verdict(code string) *sandbox.Failure {
	sum := sha256.Sum256([]byte(code))
	c.mu.Lock()
	failure, known := c.known[sum]
	c.mu.Unlock()
	if known {
		return failure
	}
	failure, err := c.runner.Check(context.Background(), code)
	if err != nil || failure != nil && (failure.Kind == sandbox.Lost || failure.Kind == sandbox.Crashed) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxKnown {
		clear(c.known)
	}
	c.known[sum] = failure
	return failure
}
