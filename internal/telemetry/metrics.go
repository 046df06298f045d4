package telemetry

// Name is the name of a metric.
type Name string

// Kind is the type of a metric.
type Kind string

// The kinds. A counter only increases; a restart resets it.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Metric describes a metric. Its labels have a small, fixed set of values: no
// paths, and nothing that belongs to a workspace.
type Metric struct {
	Name   Name
	Kind   Kind
	Labels []string
	Help   string
}

// The metrics. Metrics that do not apply to a node, such as those of SQLite, are
// omitted there.
const (
	BuildInfo    Name = "stepmill_build_info"
	NodeInfo     Name = "stepmill_node_info"
	Ready        Name = "stepmill_ready"
	Warnings     Name = "stepmill_warnings"
	Nodes        Name = "stepmill_nodes"
	NodeLost     Name = "stepmill_node_lost_total"
	ClockOffset  Name = "stepmill_clock_offset_seconds"
	ScrapeErrors Name = "stepmill_scrape_errors_total"

	HTTPRequests           Name = "stepmill_http_requests_total"
	HTTPDuration           Name = "stepmill_http_request_duration_seconds"
	HTTPErrors             Name = "stepmill_http_errors_total"
	HTTPStreams            Name = "stepmill_http_streams"
	HTTPConnections        Name = "stepmill_http_connections"
	HTTPConnectionsSpare   Name = "stepmill_http_connections_spare_total"
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

	StoreTransactions Name = "stepmill_store_transactions_total"
	StoreGroups       Name = "stepmill_store_group_transactions"
	StoreCommits      Name = "stepmill_store_commit_duration_seconds"
	StoreErrors       Name = "stepmill_store_errors_total"
	StoreWaiting      Name = "stepmill_store_transactions_waiting"
	PostgresConns     Name = "stepmill_postgres_connections"
	PostgresXact      Name = "stepmill_postgres_oldest_transaction_seconds"
	SQLiteBytes       Name = "stepmill_sqlite_file_bytes"
	SQLiteLog         Name = "stepmill_sqlite_wal_bytes"
	DiskFree          Name = "stepmill_disk_free_bytes"
	DiskReserve       Name = "stepmill_disk_reserve_bytes"

	FileBytes          Name = "stepmill_file_bytes_total"
	FilesWritten       Name = "stepmill_files_written_total"
	FilesRemoved       Name = "stepmill_files_removed_total"
	FileBlobsDeleted   Name = "stepmill_file_blobs_deleted_total"
	FileStreams        Name = "stepmill_file_streams"
	FileStreamsWaiting Name = "stepmill_file_streams_waiting"

	SandboxAlive   Name = "stepmill_sandbox_processes"
	SandboxStarts  Name = "stepmill_sandbox_processes_started_total"
	SandboxBusy    Name = "stepmill_sandbox_scripts_running"
	SandboxWaiting Name = "stepmill_sandbox_scripts_waiting"
)

// Metrics returns all metrics in the order of the documentation.
func Metrics() []Metric { return metrics }

var metrics = []Metric{
	{BuildInfo, Gauge, []string{"version", "go_version"}, "Always 1. The labels are the version of the build."},
	{NodeInfo, Gauge, []string{"node", "role"}, "Always 1. The labels are the name and the role of the node."},
	{Ready, Gauge, nil, "1 if /readyz returns 200, otherwise 0."},
	{Warnings, Gauge, []string{"reason"}, "1 while /readyz has a warning, otherwise 0."},
	{Nodes, Gauge, nil, "Nodes that share the database."},
	{NodeLost, Counter, nil, "Number of times this node released its runs because its lease expired."},
	{ClockOffset, Gauge, nil, "Difference between the clock of the database and the clock of this machine. Positive if the database is ahead."},
	{ScrapeErrors, Counter, nil, "Scrapes that could not read some of the metrics."},

	{HTTPRequests, Counter, []string{"method", "route", "status"}, "Completed requests, by route and status class."},
	{HTTPDuration, Histogram, []string{"method", "route"}, "Duration of requests, excluding streams."},
	{HTTPErrors, Counter, []string{"code"}, "Requests that were rejected or failed, by error code."},
	{HTTPStreams, Gauge, nil, "Open event streams."},
	{HTTPConnections, Gauge, nil, "Open client connections."},
	{HTTPConnectionsSpare, Counter, nil, "Connections that only health checks could use, because the process had no connections or file descriptors left."},
	{HTTPConnectionsRefused, Counter, nil, "Connections that were rejected because the client address had too many open."},

	{RunsStarted, Counter, nil, "Runs accepted by this node."},
	{RunsEnded, Counter, []string{"status"}, "Runs ended by this node, by final status."},
	{RunFailures, Counter, []string{"code"}, "Failed runs, by error code."},
	{RunsActive, Gauge, nil, "Runs held by this node."},
	{RunsQueued, Gauge, nil, "Runs queued on this node."},
	{RunsOldest, Gauge, nil, "Age of the oldest ready run. 0 if there is none."},
	{RunsResumed, Counter, nil, "Runs that this node took over from dead nodes."},
	{RunsFound, Counter, nil, "Orphaned runs that were due and had no job, and were requeued."},

	{Steps, Counter, []string{"action", "outcome"}, "Step executions, by action and outcome."},
	{StepDuration, Histogram, []string{"action"}, "Execution time of actions, excluding waits."},
	{StepFailures, Counter, []string{"code"}, "Failed step executions, by error code."},

	{LeasesLost, Counter, nil, "Writes rejected because the run was cancelled, deleted or taken over in the meantime."},
	{ActionsStuck, Gauge, nil, "Actions that are still running after their timeout."},

	{EgressCalls, Counter, []string{"outcome"}, "Outgoing requests of steps and webhooks, by outcome: answered, or an error code."},

	{WebhookAttempts, Counter, []string{"outcome"}, "Webhook delivery attempts, by outcome."},
	{WebhookDuration, Histogram, nil, "Response time of webhook endpoints."},
	{WebhookInFlight, Gauge, nil, "Webhook delivery attempts in flight."},
	{WebhookQueued, Gauge, nil, "Due deliveries queued on this node."},
	{WebhookOldest, Gauge, nil, "Age of the oldest pending delivery. 0 if there is none."},
	{WebhookLate, Gauge, nil, "How long the oldest due delivery has been overdue. 0 if there is none."},

	{StoreTransactions, Counter, []string{"outcome"}, "Write transactions, by outcome."},
	{StoreGroups, Histogram, nil, "Number of write transactions per group commit."},
	{StoreCommits, Histogram, nil, "Duration of a commit, from its first statement until it is durable."},
	{StoreErrors, Counter, []string{"kind"}, "Database errors, by kind."},
	{StoreWaiting, Gauge, nil, "Write transactions waiting to be committed."},
	{PostgresConns, Gauge, []string{"state"}, "Database connections of this node, by state: in_use, idle, or free for those it may still open."},
	{PostgresXact, Gauge, nil, "Age of the oldest transaction of any client that prevents vacuuming."},
	{SQLiteBytes, Gauge, nil, "Size of the database file."},
	{SQLiteLog, Gauge, nil, "Size of the write-ahead log."},
	{DiskFree, Gauge, nil, "Free space on the disk of the data directory."},
	{DiskReserve, Gauge, nil, "Free space below which no new runs and uploads are accepted."},

	{FileBytes, Counter, []string{"direction"}, "Bytes of files written (in) and read (out)."},
	{FilesWritten, Counter, nil, "Files whose bytes were stored, including parts of resumable uploads."},
	{FilesRemoved, Counter, nil, "Files removed because nothing referred to them any more."},
	{FileBlobsDeleted, Counter, []string{"reason"}, "Stored bytes deleted: those of removed files, and orphaned ones that a crash had left behind."},
	{FileStreams, Gauge, []string{"direction"}, "Files being written (in) and downloaded (out)."},
	{FileStreamsWaiting, Gauge, nil, "Files waiting to be written."},

	{SandboxAlive, Gauge, nil, "Running sandbox processes."},
	{SandboxStarts, Counter, nil, "Sandbox processes started."},
	{SandboxBusy, Gauge, nil, "Running scripts."},
	{SandboxWaiting, Gauge, nil, "Scripts that wait for a process."},
}
