package auth

import (
	"slices"
	"time"
)

// Plan is the pricing plan of a workspace. It sets its limits.
type Plan string

// The plans.
const (
	Free       Plan = "free"
	Pro        Plan = "pro"
	Enterprise Plan = "enterprise"
)

// FirstRequestsPerMinute is the rate limit of the installation's first workspace.
const FirstRequestsPerMinute = 60_000

// MaxRequestsPerMinute is the highest rate limit of an enterprise workspace.
const MaxRequestsPerMinute = 1_000_000

// Limits are the limits of a plan.
type Limits struct {
	RequestBodyBytes int64
	PayloadBytes     int
	StepsPerWorkflow int
	Workflows        int
	Webhooks         int
	APIKeys          int
	// StepsPerRun is the number of steps a run may execute, including loop rounds.
	StepsPerRun int
	// OutputBytes limits the output of a step, StateBytes the stored state of a run.
	OutputBytes int
	StateBytes  int
	// ConcurrentRuns is the number of runs that may execute at the same time,
	// QueuedRuns the number that may wait to execute. Runs that wait for something
	// else do not count.
	ConcurrentRuns int
	QueuedRuns     int
	Secrets        int
	Variables      int
	Connections    int
	// VariableBytes limits the total size of all variables: a run that refers to
	// one reads them all.
	VariableBytes int
	// Tables and TableRows are how many tables there may be and how many rows they
	// may have together. RowBytes limits a single row.
	Tables    int
	TableRows int
	RowBytes  int
	StateKeys int
	// StoredBytes limits the total size of all rows and keys.
	StoredBytes int
	// FileBytes limits a file, RunFileBytes what the files that a run creates have
	// together, and StoredFileBytes what the files of the workspace have together.
	FileBytes       int64
	RunFileBytes    int64
	StoredFileBytes int64
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// MaxRequestBody is the largest request body that any plan allows. Proxies are told to accept as
// much, see docs/operations.md.
const MaxRequestBody = 4 * mib

// Plans lists the plans.
func Plans() []Plan { return []Plan{Free, Pro, Enterprise} }

// Known reports whether p is one of Plans.
func (p Plan) Known() bool { return slices.Contains(Plans(), p) }

// RequestsPerMinute returns the fixed rate limit of the plan, or zero if it is set
// per workspace.
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

// Limits returns the limits of the plan.
func (p Plan) Limits() Limits {
	switch p {
	case Enterprise:
		return Limits{
			RequestBodyBytes: 4 * mib, PayloadBytes: 2 * mib, StepsPerWorkflow: 500,
			Workflows: 10_000, Webhooks: 500, APIKeys: 500,
			StepsPerRun: 50_000, OutputBytes: 1 * mib, StateBytes: 32 * mib, ConcurrentRuns: 1_000, QueuedRuns: 100_000,
			Secrets: 10_000, Variables: 10_000, Connections: 2_000, VariableBytes: 16 * mib,
			Tables: 1_000, TableRows: 1_000_000, RowBytes: 128 * kib, StateKeys: 100_000, StoredBytes: 2048 * mib,
			FileBytes: 5 * gib, RunFileBytes: 20 * gib, StoredFileBytes: 500 * gib,
		}
	case Pro:
		return Limits{
			RequestBodyBytes: 2 * mib, PayloadBytes: 1 * mib, StepsPerWorkflow: 200,
			Workflows: 1_000, Webhooks: 50, APIKeys: 100,
			StepsPerRun: 10_000, OutputBytes: 1 * mib, StateBytes: 16 * mib, ConcurrentRuns: 50, QueuedRuns: 10_000,
			Secrets: 1_000, Variables: 1_000, Connections: 200, VariableBytes: 4 * mib,
			Tables: 100, TableRows: 100_000, RowBytes: 64 * kib, StateKeys: 10_000, StoredBytes: 256 * mib,
			FileBytes: 512 * mib, RunFileBytes: 2 * gib, StoredFileBytes: 20 * gib,
		}
	default:
		return Limits{
			RequestBodyBytes: 1 * mib, PayloadBytes: 256 * kib, StepsPerWorkflow: 50,
			Workflows: 100, Webhooks: 20, APIKeys: 20,
			StepsPerRun: 1_000, OutputBytes: 256 * kib, StateBytes: 8 * mib, ConcurrentRuns: 5, QueuedRuns: 1_000,
			Secrets: 100, Variables: 100, Connections: 20, VariableBytes: 1 * mib,
			Tables: 10, TableRows: 10_000, RowBytes: 32 * kib, StateKeys: 1_000, StoredBytes: 16 * mib,
			FileBytes: 25 * mib, RunFileBytes: 100 * mib, StoredFileBytes: 1 * gib,
		}
	}
}

// Retention determines which finished runs are kept.
type Retention struct {
	// KeepRuns is how long a run is kept after it finishes; zero means forever.
	KeepRuns time.Duration
	// RunsPerWorkflow is how many of the newest runs of a workflow are kept; zero
	// means all. Unfinished runs are always kept.
	RunsPerWorkflow int
}

// Retention returns how long and how many runs the plan keeps.
func (p Plan) Retention() Retention {
	const day = 24 * time.Hour
	switch p {
	case Enterprise, Pro:
		return Retention{KeepRuns: 30 * day}
	default:
		return Retention{KeepRuns: 7 * day, RunsPerWorkflow: 10_000}
	}
}
