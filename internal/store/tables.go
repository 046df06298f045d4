package store

import (
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/archive"
)

// Schema is the version of the tables below: that of the last migration of the
// embedded database. An export contains it.
const Schema = 15

// Table describes which columns of a table an export contains, as lists of names
// separated by spaces, grouped by type.
type Table struct {
	Name string
	// Key is the primary key, in whose order rows are read.
	Key string
	// Numbered is set if the database assigns the key from a sequence.
	Numbered               bool
	Text, Int, Bool, Bytes string
	// NotExported names columns that are not exported. Cluster names columns that only
	// the database of a cluster has; they are not exported either.
	NotExported, Cluster string
}

// Exported returns everything that an installation contains. The tests of the
// databases fail for a table or column that is neither here nor in LeftOut.
func Exported() []Table {
	return slices.Concat(workspaceTables(), workflowTables(), runTables(), eventTables(), stateTables(), fileTables())
}

func workspaceTables() []Table {
	return []Table{
		// The id of an import means nothing elsewhere.
		{Name: "installation", Key: "id", Text: "first_workspace_id", Int: "id created_at", Bytes: "key_check", NotExported: "importing"},
		// The rest is about the machine that wrote it. Before the runs, whose times it
		// belongs to.
		{Name: "service_clock", Key: "id", Int: "id correction settled", NotExported: "seen boot booted_at"},
		{
			Name: "workspaces", Key: "id", Text: "id name plan", Bytes: "data_key",
			Int: "requests_per_minute created_at updated_at workflows webhooks api_keys secrets variables variable_bytes connections",
		},
		{
			Name: "api_keys", Key: "id", Text: "id workspace_id name scopes lookup created_by", Bytes: "hash",
			Int: "created_at expires_at last_used_at revoked_at",
		},
		{Name: "users", Key: "id", Text: "id email name password identity", Int: "seen_at created_at"},
		{Name: "members", Key: "workspace_id user_id", Text: "workspace_id user_id role", Int: "joined_at"},
		{Name: "invitations", Key: "id", Text: "id workspace_id email role created_by", Int: "created_at expires_at", Bytes: "hash"},
		{Name: "audit", Key: "id", Text: "id workspace_id actor_type actor_id action target_type target_id details request_id", Int: "at seq", Bytes: "hash"},
		{Name: "audit_chains", Key: "workspace_id", Text: "workspace_id", Int: "seq purged_seq", Bytes: "hash purged_hash"},
		{Name: "secrets", Key: "workspace_id name", Text: "workspace_id name created_by updated_by", Int: "created_at updated_at", Bytes: "value"},
		{Name: "variables", Key: "workspace_id name", Text: "workspace_id name value created_by updated_by", Int: "created_at updated_at"},
		{
			Name: "connections", Key: "id", Bytes: "credential", NotExported: "renewing_node renewing_to",
			Text: "id workspace_id name integration definition auth fields learned hosts account app account_id status problem created_by updated_by access members",
			Int:  "epoch expires_at last_used_at created_at updated_at consent_ends_at warn_at",
		},
		{Name: "connection_aliases", Key: "workspace_id name", Text: "workspace_id name connection_id"},
		{
			Name: "oauth_apps", Key: "id", Text: "id workspace_id integration auth client_id fields created_by updated_by",
			Int: "created_at updated_at", Bool: "shared", Bytes: "secret",
		},
		{
			Name: "own_integrations", Key: "workspace_id id", Text: "workspace_id id manifest digest created_by updated_by",
			Int: "created_at updated_at",
		},
		{Name: "connection_users", Key: "workflow_id connection", Text: "workflow_id connection workspace_id"},
	}
}

func workflowTables() []Table {
	return []Table{
		{
			Name: "workflows", Key: "id", Text: "id workspace_id name description state layout source pinned pinned_files",
			Int: "version revision created_at updated_at deleted_at", Bool: "source_stale",
		},
		{
			Name: "triggers", Key: "workflow_id trigger_id",
			Text: "workflow_id trigger_id workspace_id type run_id error_code error_text not_fired_code not_fired_text spec subscription",
			Int:  "version next_at fired_at error_at failures not_fired_at", Bool: "active", Bytes: "token_hash token state",
			NotExported: "polling poll_again",
		},
		{
			Name: "subscriptions", Key: "id", Text: "id target workspace_id connection_id hook base_url error_code error_text",
			Int: "expires_at next_at failures error_at created_at", Bool: "registered", Bytes: "token_hash sealed", NotExported: "claimed_by claimed_until",
		},
		{Name: "app_calls", Key: "id", Text: "id workspace_id hook app account_id", Int: "received_at next_at failures", Bytes: "sealed"},
		{Name: "pending_triggers", Key: "workflow_id trigger_id event_id", Text: "workflow_id trigger_id event_id workspace_id", Int: "next_at"},
		{Name: "trigger_keys", Key: "workflow_id trigger_id hash", Text: "workflow_id trigger_id run_id", Int: "expires_at", Bytes: "hash"},
		{
			Name: "hook_requests", Key: "workflow_id trigger_id id", Int: "at size",
			Text: "workflow_id trigger_id id workspace_id method outcome run_id headers query payload files",
		},
		{Name: "workflow_versions", Key: "workflow_id version", Text: "workflow_id created_by definition source files", Int: "version created_at level"},
	}
}

func runTables() []Table {
	return []Table{
		{
			Name: "runs", Key: "id", Int: "workflow_version started_at finished_at depth", Bool: "parent_waits test draft",
			Text: "id workspace_id workflow_id status trigger_type trigger_id error_code error_text error_step retry_of parent_run parent_step concurrency_key payload headers query started_by_type started_by_id started_by_name files",
		},
		{
			Name: "run_queue", Key: "run_id", Text: "run_id workspace_id workflow_id node executing suspects concurrency_key waiting_step",
			Int: "epoch wake_at execution_time log_bytes crashes concurrency_limit level", Bool: "admitted", Cluster: "slot throttled orphaned",
		},
		{
			Name: "steps", Key: "run_id path", Int: "seq attempt started_at attempt_at finished_at wake_at deadline rev checkpoint_attempt", Bytes: "state",
			Text: "run_id path name type status awaits reason error_code error_text error_step input output answer input_files output_files answer_files",
		},
		{Name: "run_drafts", Key: "run_id", Text: "run_id definition pinned files pinned_files", Int: "level"},
		{Name: "early_answers", Key: "run_id path", Text: "run_id path value"},
		{Name: "step_logs", Key: "run_id rev line", Text: "run_id path level message", Int: "rev line attempt at"},
		{Name: "step_attempts", Key: "run_id path attempt", Text: "run_id path error_code error_text", Int: "attempt started_at finished_at"},
		{Name: "step_chunks", Key: "run_id path number", Text: "run_id path", Int: "number", Bytes: "data"},
		{Name: "purged_runs", Key: "run_id", Text: "run_id"},
	}
}

func eventTables() []Table {
	return []Table{
		{
			Name: "webhooks", Key: "id", Text: "id workspace_id url events workflow_id disabled_reason secret_hint", Bool: "enabled",
			Int: "old_until failures failing_since created_at updated_at deleted_at", Bytes: "secret old_secret",
		},
		{
			Name: "events", Key: "seq", Numbered: true, Text: "id workspace_id type workflow_id run_id", Int: "seq at depth", Bool: "sample",
			Bytes: "body",
		},
		{
			Name: "deliveries", Key: "seq", Numbered: true, Text: "id workspace_id webhook_id event_id run_id status",
			Int: "seq attempts next_at created_at finished_at",
		},
		{Name: "delivery_attempts", Key: "delivery_id attempt", Text: "delivery_id error response", Int: "attempt at duration status"},
		{Name: "idempotency", Key: "workspace_id route key_hash", Text: "workspace_id route key_hash", Int: "expires_at", Bytes: "fingerprint response"},
		{Name: "usage", Key: "workspace_id date", Text: "workspace_id date", Int: "requests runs_started runs_succeeded runs_failed runs_cancelled"},
	}
}

// stateTables lists what runs and people keep between runs.
func stateTables() []Table {
	return []Table{
		{
			Name: "data_tables", Key: "id", Text: "id workspace_id name columns key_column created_by updated_by",
			Int: "last_column row_count row_bytes created_at updated_at",
		},
		{Name: "table_rows", Key: "table_id id", Text: "table_id id workspace_id unique_key data", Int: "size created_at updated_at"},
		{Name: "table_index", Key: "table_id column_id value row_id", Text: "table_id column_id value row_id workspace_id"},
		{Name: "purged_tables", Key: "table_id column_id", Text: "table_id column_id"},
		{Name: "state_keys", Key: "workspace_id workflow_id name", Text: "workspace_id workflow_id name value files", Int: "size expires_at created_at updated_at"},
		{Name: "state_usage", Key: "workspace_id", Text: "workspace_id", Int: "tables table_rows state_keys stored_bytes"},
	}
}

// fileTables lists what describes files.
func fileTables() []Table {
	return []Table{
		{Name: "files", Key: "id", Text: "id workspace_id blob_id name type sha256 list", Int: "size holders created_at expires_at"},
		{Name: "file_blobs", Key: "id", Text: "id workspace_id sha256", Int: "size files"},
		{Name: "file_refs", Key: "holder file_id", Text: "holder file_id workspace_id"},
		// Resumable uploads are not exported.
		{Name: "file_usage", Key: "owner", Text: "owner", Int: "files bytes", NotExported: "uploading"},
	}
}

// LeftOut returns the tables that are not exported, with the reason.
func LeftOut() map[string]string {
	return map[string]string{
		"goose_db_version": "the migrations of one database",
		"schema_versions":  "the migrations of one database",
		"schema_release":   "the release that they came with",
		"sessions":         "where people are signed in to one installation",
		"consents":         "consents that people are asked for, for half an hour at most",
		"tickets":          "links into one installation that expire within a day",
		"rate_windows":     "counts of the current minute",
		"nodes":            "the nodes that share a database",
		"workspace_load":   "the runs those nodes have in flight, which are none while they are stopped",
		"webhook_owners":   "which of those nodes sends the deliveries of which webhook",
		"leaderships":      "which of those nodes is the leader",
		"recovery":         "whether one database has crashed",
		"files_place":      "where one installation has the bytes of files",
		"purged_blobs":     "bytes that one installation has yet to delete",
		"uploads":          "resumable uploads, which expire within a day",
		"upload_parts":     "the bytes of those uploads",
		"blobs":            "the bytes of files, which an archive has apart from the tables",
		"blob_chunks":      "the bytes of files, which an archive has apart from the tables",
	}
}

// Columns returns the exported columns in the order in which an archive has them.
func (t Table) Columns() []archive.Column {
	var columns []archive.Column
	for _, part := range []struct {
		kind  archive.Kind
		names string
	}{{archive.Text, t.Text}, {archive.Int, t.Int}, {archive.Bool, t.Bool}, {archive.Bytes, t.Bytes}} {
		for name := range strings.FieldsSeq(part.names) {
			columns = append(columns, archive.Column{Name: name, Kind: part.kind})
		}
	}
	return columns
}

// Archived returns the sections of an archive: the tables, and the bytes of files.
func Archived() []archive.Table {
	var tables []archive.Table
	for _, t := range Exported() {
		tables = append(tables, archive.Table{Name: t.Name, Columns: t.Columns()})
	}
	return slices.Insert(tables, fileBytesAt, fileBytesTable())
}

// sqlList joins names separated by spaces into an SQL list.
func sqlList(names string) string { return strings.Join(strings.Fields(names), ", ") }

// columnList returns the exported columns as an SQL list.
func (t Table) columnList() string {
	return sqlList(t.Text + " " + t.Int + " " + t.Bool + " " + t.Bytes)
}
