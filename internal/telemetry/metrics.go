package telemetry

// Name is the name of a metric.
type Name string

// Kind says how the values of a metric behave.
type Kind string

// The kinds. A counter only grows; after a restart it begins anew.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Metric is one thing to watch. Its labels have few values that are known
// beforehand: no path, and nothing that belongs to a workspace.
type Metric struct {
	Name   Name
	Kind   Kind
	Labels []string
	Help   string
}

// The metrics. Those that are not of every node, as those of SQLite, are left
// out where they do not apply.
const (
	BuildInfo    Name = "stepmill_build_info"
	NodeInfo     Name = "stepmill_node_info"
	Ready        Name = "stepmill_ready"
	Nodes        Name = "stepmill_nodes"
	NodeLost     Name = "stepmill_node_lost_total"
	ClockOffset  Name = "stepmill_clock_offset_seconds"
	ScrapeErrors Name = "stepmill_scrape_errors_total"

	HTTPRequests           Name = "stepmill_http_requests_total"
	HTTPDuration           Name = "stepmill_http_request_duration_seconds"
	HTTPErrors             Name = "stepmill_http_errors_total"
	HTTPStreams            Name = "stepmill_http_streams"
	HTTPConnections        Name = "stepmill_http_connections"
	HTTPConnectionsRefused Name = "stepmill_http_connections_refused_total"

	RunsStarted Name = "stepmill_runs_started_total"
	RunsEnded   Name = "stepmill_runs_ended_total"
	RunFailures Name = "stepmill_run_failures_total"
	RunsActive  Name = "stepmill_runs_active"
	RunsQueued  Name = "stepmill_runs_queued"
	RunsOldest  Name = "stepmill_runs_oldest_ready_seconds"
	RunsResumed Name = "stepmill_runs_resumed_total"
	RunsFound   Name = "stepmill_runs_found_total"

	Steps        Name = "stepmill_steps_total"
	StepDuration Name = "stepmill_step_duration_seconds"
	StepFailures Name = "stepmill_step_failures_total"

	LeasesLost   Name = "stepmill_engine_leases_lost_total"
	ActionsStuck Name = "stepmill_engine_actions_stuck"

	EgressCalls Name = "stepmill_egress_calls_total"

	WebhookAttempts Name = "stepmill_webhook_attempts_total"
	WebhookDuration Name = "stepmill_webhook_attempt_duration_seconds"
	WebhookInFlight Name = "stepmill_webhook_attempts_in_flight"
	WebhookQueued   Name = "stepmill_webhook_deliveries_queued"
	WebhookOldest   Name = "stepmill_webhook_oldest_undelivered_seconds"
	WebhookLate     Name = "stepmill_webhook_oldest_due_seconds"

	StoreUnits    Name = "stepmill_store_units_total"
	StoreGroups   Name = "stepmill_store_group_units"
	StoreCommits  Name = "stepmill_store_commit_duration_seconds"
	StoreErrors   Name = "stepmill_store_errors_total"
	StoreWaiting  Name = "stepmill_store_units_waiting"
	PostgresConns Name = "stepmill_postgres_connections"
	PostgresXact  Name = "stepmill_postgres_oldest_transaction_seconds"
	SQLiteBytes   Name = "stepmill_sqlite_file_bytes"
	SQLiteLog     Name = "stepmill_sqlite_wal_bytes"
	DiskFree      Name = "stepmill_disk_free_bytes"
	SandboxAlive  Name = "stepmill_sandbox_processes"
	SandboxStarts Name = "stepmill_sandbox_processes_started_total"
	SandboxBusy   Name = "stepmill_sandbox_scripts_running"
)

// Metrics lists every metric, in the order of the documentation.
func Metrics() []Metric { return metrics }

var metrics = []Metric{
	{BuildInfo, Gauge, []string{"version", "go_version"}, "Always 1. The labels say what runs."},
	{NodeInfo, Gauge, []string{"node", "role"}, "Always 1. The labels say which node this is."},
	{Ready, Gauge, nil, "1 if /readyz answers 200, else 0."},
	{Nodes, Gauge, nil, "Nodes that share the database."},
	{NodeLost, Counter, nil, "How often this node let go of its runs because the database had not heard of it for too long."},
	{ClockOffset, Gauge, nil, "How far the clock of the database is ahead of that of this machine."},
	{ScrapeErrors, Counter, nil, "Looks at the metrics that could not read some of them."},

	{HTTPRequests, Counter, []string{"method", "route", "status"}, "Requests that were answered, by route and by class of status."},
	{HTTPDuration, Histogram, []string{"method", "route"}, "How long requests took, without streams."},
	{HTTPErrors, Counter, []string{"code"}, "Requests that were refused or failed, by error code."},
	{HTTPStreams, Gauge, nil, "Open streams of events."},
	{HTTPConnections, Gauge, nil, "Open connections of clients."},
	{HTTPConnectionsRefused, Counter, nil, "Connections that were closed at once because their address had too many."},

	{RunsStarted, Counter, nil, "Runs that were accepted by this node."},
	{RunsEnded, Counter, []string{"status"}, "Runs that came to their end by this node, by final status."},
	{RunFailures, Counter, []string{"code"}, "Runs that failed, by error code."},
	{RunsActive, Gauge, nil, "Runs in the hands of this node."},
	{RunsQueued, Gauge, nil, "Runs that wait in this node to be taken up."},
	{RunsOldest, Gauge, nil, "How long the run has waited that could have been taken up first; 0 if none waits."},
	{RunsResumed, Counter, nil, "Runs that this node took over from nodes that are gone."},
	{RunsFound, Counter, nil, "Runs that were due and on nobody's way, and were brought on it."},

	{Steps, Counter, []string{"action", "outcome"}, "Executions of steps, by action and outcome."},
	{StepDuration, Histogram, []string{"action"}, "How long actions were at work, without waiting."},
	{StepFailures, Counter, []string{"code"}, "Executions of steps that failed, by error code."},

	{LeasesLost, Counter, nil, "Writes that were refused because the run was cancelled, deleted or taken over meanwhile."},
	{ActionsStuck, Gauge, nil, "Actions that go on although their time is over."},

	{EgressCalls, Counter, []string{"outcome"}, "Calls to the outside by steps and webhooks: answered, or why not."},

	{WebhookAttempts, Counter, []string{"outcome"}, "Attempts to deliver an event, by outcome."},
	{WebhookDuration, Histogram, nil, "How long endpoints took to answer."},
	{WebhookInFlight, Gauge, nil, "Attempts under way."},
	{WebhookQueued, Gauge, nil, "Deliveries that are due and wait in this node for their turn."},
	{WebhookOldest, Gauge, nil, "Age of the oldest delivery that was neither delivered nor given up; 0 if there is none."},
	{WebhookLate, Gauge, nil, "How long the delivery has been due that was due first; 0 if none is."},

	{StoreUnits, Counter, []string{"outcome"}, "Atomic units of writing, by outcome."},
	{StoreGroups, Histogram, nil, "How many units shared a commit."},
	{StoreCommits, Histogram, nil, "How long a commit took, from its first statement until it was durable."},
	{StoreErrors, Counter, []string{"kind"}, "Errors of the database, by kind."},
	{StoreWaiting, Gauge, nil, "Units that wait to be written."},
	{PostgresConns, Gauge, []string{"state"}, "Connections to the database that this node may have: in_use, idle, free."},
	{PostgresXact, Gauge, nil, "Age of the oldest transaction, of anybody, that keeps the database from cleaning up."},
	{SQLiteBytes, Gauge, nil, "Size of the database file."},
	{SQLiteLog, Gauge, nil, "Size of the write-ahead log."},
	{DiskFree, Gauge, nil, "What can still be written to the disk of the data directory."},

	{SandboxAlive, Gauge, nil, "Processes for scripts that are alive."},
	{SandboxStarts, Counter, nil, "Processes for scripts that were started."},
	{SandboxBusy, Gauge, nil, "Scripts that run."},
}
