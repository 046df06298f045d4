package store

import (
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/archive"
)

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
	return []Table{
		installationTable,
		serviceClockTable,
		workspaceRows.Table,
		keyRows.Table,
		userRows.Table,
		membersTable,
		invitationRows.Table,
		auditTable,
		auditChainsTable,
		secretsTable,
		variablesTable,
		connectionRows.Table,
		connectionAliasesTable,
		appRows.Table,
		manifestRows.Table,
		connectionUsersTable,
		workflowRows.Table,
		triggerRows.Table,
		subscriptionRows.Table,
		appCallRows.Table,
		pendingTriggersTable,
		triggerKeysTable,
		hookRequestsTable,
		versionRows.Table,
		runsTable,
		runQueueTable,
		stepsTable,
		runDraftsTable,
		earlyAnswersTable,
		stepLogsTable,
		stepAttemptsTable,
		stepChunksTable,
		purgedRunsTable,
		webhookRows.Table,
		eventsTable,
		deliveriesTable,
		deliveryAttemptsTable,
		idempotencyTable,
		usageTable,
		dataTableRows.Table,
		tableRowsTable,
		tableIndexTable,
		purgedTablesTable,
		stateKeysTable,
		stateUsageTable,
		fileRows.Table,
		fileBlobsTable,
		fileRefsTable,
		fileUsageTable,
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

func sqlList(names string) string { return strings.Join(strings.Fields(names), ", ") }

// columnList returns the exported columns as an SQL list.
func (t Table) columnList() string {
	return sqlList(t.Text + " " + t.Int + " " + t.Bool + " " + t.Bytes)
}
