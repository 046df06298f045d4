package workflow

import (
	"time"

	"github.com/stepmill/stepmill/internal/expr"
)

const (
	defaultRunTimeout = time.Hour
	maxRunTimeout     = 24 * time.Hour
	maxRunLimit       = 1000
)

// ConcurrencyLimit is a compiled Concurrency: runs with the same key share a
// number of slots.
type ConcurrencyLimit struct {
	Key     *expr.Template // nil: all runs of the workflow share one key
	Limit   int
	OnLimit OnLimit
}

// compileSettings checks the settings and adds them to the program.
func (c *compiler) compileSettings(s Settings, program *Program) {
	program.Timeout = defaultRunTimeout
	if s.Timeout != "" {
		program.Timeout = c.parseDuration("/settings/timeout", s.Timeout, maxRunTimeout)
	}
	if s.Concurrency != nil {
		program.Concurrency = c.compileConcurrency("/settings/concurrency", *s.Concurrency)
	}
}

func (c *compiler) compileConcurrency(at string, given Concurrency) *ConcurrencyLimit {
	limit := &ConcurrencyLimit{Limit: int(given.Limit), OnLimit: given.OnLimit}
	if limit.Limit == 0 {
		limit.Limit = 1
	}
	if limit.Limit > maxRunLimit {
		c.report(at+"/limit", "", "must be at most %d", maxRunLimit)
	}
	switch limit.OnLimit {
	case "":
		limit.OnLimit = Queue
	case Queue, Drop, CancelRunning:
	default:
		c.report(at+"/on_limit", "", "must be one of queue, drop, cancel_running")
	}
	if given.Key == "" {
		return limit
	}
	key, err := expr.CompileTemplate(given.Key)
	if err != nil {
		c.reportExpr(at+"/key", err)
		return limit
	}
	refs := key.Refs()
	if len(refs.Steps) > 0 || refs.AllSteps {
		c.report(at+"/key", "use trigger.payload", "the key cannot use steps: it is evaluated before any step runs")
	}
	if len(refs.Secrets) > 0 {
		c.report(at+"/key", "", "the key cannot use a secret: it is stored in plain text")
	}
	if len(refs.Vars) > 0 || refs.AllVars {
		c.report(at+"/key", "use trigger.payload", "the key cannot use variables")
	}
	refs.Steps, refs.Secrets, refs.Vars = nil, nil, nil
	c.checkRefs(at+"/key", refs, scope{})
	limit.Key = key
	return limit
}
