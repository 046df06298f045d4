package codejs

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/sandbox"
)

// maxCached is the maximum number of cached results.
const maxCached = 4096

// checker compiles scripts before they run. Code is compiled only in the
// sandbox, because hostile code can be as expensive to compile as to run. The
// same code is checked whenever its workflow is saved, so results are cached.
type checker struct {
	runner Runner
	mu     sync.Mutex
	cache  map[[sha256.Size]byte]*sandbox.Failure
}

func newChecker(runner Runner) *checker {
	return &checker{runner: runner, cache: map[[sha256.Size]byte]*sandbox.Failure{}}
}

func (c *checker) check(with map[string]any) []action.Problem {
	code, ok := with["code"].(string)
	if !ok {
		return nil // an expression
	}
	failure := c.compile(code)
	if failure == nil {
		return nil
	}
	problem := action.Problem{Pointer: "/code", Message: formatFailure(failure)}
	switch failure.Kind {
	case sandbox.Timeout, sandbox.Memory:
		problem.Message = "is too complex to compile"
	}
	return []action.Problem{problem}
}

// compile returns nil if the code compiles, or if that cannot be determined; the
// run then reports the failure.
func (c *checker) compile(code string) *sandbox.Failure {
	sum := sha256.Sum256([]byte(code))
	c.mu.Lock()
	failure, cached := c.cache[sum]
	c.mu.Unlock()
	if cached {
		return failure
	}
	failure, err := c.runner.Check(context.Background(), code)
	switch {
	case err != nil || failure != nil && (failure.Kind == sandbox.Lost || failure.Kind == sandbox.Crashed):
		return nil
	case failure != nil && failure.Kind == sandbox.Timeout:
		return failure // not cached: the machine may have been busy
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.cache) >= maxCached {
		clear(c.cache)
	}
	c.cache[sum] = failure
	return failure
}
