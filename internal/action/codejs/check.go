package codejs

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/fairqueue"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/sandbox"
)

const maxCached = 4096

// retryAfter is when a client should save again if too many checks are waiting.
const retryAfter = 2 * time.Second

// checker compiles scripts before they run. Code is compiled only in the
// sandbox, because hostile code can be as expensive to compile as to run. The
// same code is checked whenever its workflow is saved, so results are cached.
type checker struct {
	runner Runner
	mu     sync.Mutex
	cache  map[[sha256.Size]byte]*sandbox.Failure
}

func (c *checker) check(ctx context.Context, workspaceID string, with map[string]any) ([]action.Problem, error) {
	code, ok := with["code"].(string)
	if !ok {
		return nil, nil // an expression
	}
	failure, err := c.compile(ctx, workspaceID, code)
	if failure == nil || err != nil {
		return nil, err
	}
	problem := action.Problem{Pointer: "/code", Message: formatFailure(failure)}
	switch failure.Kind {
	case sandbox.Timeout, sandbox.Memory:
		problem.Message = "is too complex to compile"
	}
	return []action.Problem{problem}, nil
}

// compile returns nil if the code compiles, or if the sandbox cannot tell; the run
// then reports the failure.
func (c *checker) compile(ctx context.Context, workspaceID, code string) (*sandbox.Failure, error) {
	sum := sha256.Sum256([]byte(code))
	c.mu.Lock()
	failure, cached := c.cache[sum]
	c.mu.Unlock()
	if cached {
		return failure, nil
	}
	failure, err := c.runner.Check(ctx, workspaceID, code)
	switch {
	case errors.Is(err, fairqueue.ErrFull):
		return nil, fault.New(fault.RateLimited, "too many scripts of this workspace are waiting to be compiled; save fewer workflows at the same time").After(retryAfter)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil || failure != nil && (failure.Kind == sandbox.Lost || failure.Kind == sandbox.Crashed):
		return nil, nil
	case failure != nil && failure.Kind == sandbox.Timeout:
		return failure, nil // not cached: the machine may have been busy
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.cache) >= maxCached {
		clear(c.cache)
	}
	c.cache[sum] = failure
	return failure, nil
}
