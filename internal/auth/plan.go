package auth

import (
	"slices"
	"time"
)

// Plan is what a workspace is entitled to.
type Plan string

// The plans.
const (
	Free       Plan = "free"
	Pro        Plan = "pro"
	Enterprise Plan = "enterprise"
)

// FirstRequestsPerMinute is the limit of the installation's first workspace.
const FirstRequestsPerMinute = 60_000

// MaxRequestsPerMinute bounds what an enterprise workspace can be given.
const MaxRequestsPerMinute = 1_000_000

// Limits are the bounds that come with a plan.
type Limits struct {
	RequestBodyBytes int64
	PayloadBytes     int
	StepsPerWorkflow int
	Workflows        int
	Webhooks         int
	APIKeys          int
	// StepsPerRun is how many steps a run executes, rounds of loops included.
	StepsPerRun int
	// OutputBytes bounds the output of a step, StateBytes all that a run keeps.
	OutputBytes int
	StateBytes  int
	// ConcurrentRuns is how many runs are executed at a time, QueuedRuns how many
	// wait for that. Runs that wait for something else do not count.
	ConcurrentRuns int
	QueuedRuns     int
	Secrets        int
	Variables      int
	// VariableBytes bounds the values of all variables together: a run that
	// refers to one reads them all.
	VariableBytes int
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// MaxRequestBody is the largest body that any plan allows.
const MaxRequestBody = 4 * mib

// Plans lists the plans.
func Plans() []Plan { return []Plan{Free, Pro, Enterprise} }

// Known tells whether p is a plan.
func (p Plan) Known() bool { return slices.Contains(Plans(), p) }

// RequestsPerMinute is the fixed rate of a plan; zero where the workspace has a
// number of its own.
func (p Plan) RequestsPerMinute() int {
	switch p {
	case Free:
		return 60
	case Pro:
		return 600
	default:
		return 0
	}
}

// Limits returns the bounds of the plan.
func (p Plan) Limits() Limits {
	switch p {
	case Enterprise:
		return Limits{
			RequestBodyBytes: 4 * mib, PayloadBytes: 2 * mib, StepsPerWorkflow: 500,
			Workflows: 10_000, Webhooks: 500, APIKeys: 500,
			StepsPerRun: 50_000, OutputBytes: 1 * mib, StateBytes: 32 * mib, ConcurrentRuns: 1_000, QueuedRuns: 100_000,
			Secrets: 10_000, Variables: 10_000, VariableBytes: 16 * mib,
		}
	case Pro:
		return Limits{
			RequestBodyBytes: 2 * mib, PayloadBytes: 1 * mib, StepsPerWorkflow: 200,
			Workflows: 1_000, Webhooks: 50, APIKeys: 100,
			StepsPerRun: 10_000, OutputBytes: 1 * mib, StateBytes: 16 * mib, ConcurrentRuns: 50, QueuedRuns: 10_000,
			Secrets: 1_000, Variables: 1_000, VariableBytes: 4 * mib,
		}
	default:
		return Limits{
			RequestBodyBytes: 1 * mib, PayloadBytes: 256 * kib, StepsPerWorkflow: 50,
			Workflows: 100, Webhooks: 20, APIKeys: 20,
			StepsPerRun: 1_000, OutputBytes: 256 * kib, StateBytes: 8 * mib, ConcurrentRuns: 5, QueuedRuns: 1_000,
			Secrets: 100, Variables: 100, VariableBytes: 1 * mib,
		}
	}
}

// Retention is how much of the past a plan keeps.
type Retention struct {
	// KeepRuns is how long a run is kept after its end; zero means forever.
	KeepRuns time.Duration
	// RunsPerWorkflow is how many runs of a workflow are kept, the newest; zero
	// means any number. Runs that are not finished stay beyond it.
	RunsPerWorkflow int
}

// Retention returns how much of the past the plan keeps.
func (p Plan) Retention() Retention {
	const day = 24 * time.Hour
	switch p {
	case Enterprise, Pro:
		return Retention{KeepRuns: 30 * day}
	default:
		return Retention{KeepRuns: 7 * day, RunsPerWorkflow: 10_000}
	}
}
