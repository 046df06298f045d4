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

// Share is Concurrency made ready: runs with the same key share a number of
// places.
type Share struct {
	Key     *expr.Template // nil: all runs of the workflow have the same
	Limit   int
	OnLimit OnLimit
}

// compileSettings checks the settings and puts them into the plan.
func (c *compiler) compileSettings(s Settings, plan *Plan) {
	plan.Timeout = defaultRunTimeout
	if s.Timeout != "" {
		plan.Timeout = c.length("/settings/timeout", s.Timeout, maxRunTimeout)
	}
	if s.Concurrency != nil {
		plan.Share = c.compileShare("/settings/concurrency", *s.Concurrency)
	}
}

func (c *compiler) compileShare(at string, given Concurrency) *Share {
	share := &Share{Limit: int(given.Limit), OnLimit: given.OnLimit}
	if share.Limit == 0 {
		share.Limit = 1
	}
	if share.Limit > maxRunLimit {
		c.report(at+"/limit", "", "must be at most %d", maxRunLimit)
	}
	switch share.OnLimit {
	case "":
		share.OnLimit = Queue
	case Queue, Drop, CancelRunning:
	default:
		c.report(at+"/on_limit", "", "must be one of queue, drop, cancel_running")
	}
	if given.Key == "" {
		return share
	}
	key, err := expr.CompileTemplate(given.Key)
	if err != nil {
		c.reportExpr(at+"/key", err)
		return share
	}
	refs := key.Refs()
	if len(refs.Steps) > 0 || refs.AllSteps {
		c.report(at+"/key", "use trigger.payload", "the key is worked out before any step has run")
	}
	if len(refs.Secrets) > 0 {
		c.report(at+"/key", "", "the key is stored in the open: it cannot be made from a secret")
	}
	if len(refs.Vars) > 0 || refs.AllVars {
		c.report(at+"/key", "use trigger.payload", "the key cannot be made from variables")
	}
	refs.Steps, refs.Secrets, refs.Vars = nil, nil, nil
	c.checkRefs(at+"/key", refs, level{})
	share.Key = key
	return share
}
