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
		}
	case Pro:
		return Limits{
			RequestBodyBytes: 2 * mib, PayloadBytes: 1 * mib, StepsPerWorkflow: 200,
			Workflows: 1_000, Webhooks: 50, APIKeys: 100,
		}
	default:
		return Limits{
			RequestBodyBytes: 1 * mib, PayloadBytes: 256 * kib, StepsPerWorkflow: 50,
			Workflows: 100, Webhooks: 20, APIKeys: 20,
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
