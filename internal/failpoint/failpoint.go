// Package failpoint names the points in the code at which tests can kill, panic
// or pause the process, or make what it does next fail. In a normal build Hit is empty and costs nothing. In a
// build with the tag failpoint, the environment variable FP configures what
// happens at which point.
package failpoint

// Point names a failpoint.
type Point string

// The failpoints.
const (
	BeforeAcceptCommit Point = "before_accept_commit"  // a run is about to be written
	AfterAcceptCommit  Point = "after_accept_commit"   // it is durable, no notification is sent
	AfterClaim         Point = "after_claim"           // a node owns the run
	BeforeEffect       Point = "before_effect"         // an action is about to be run
	AfterEffect        Point = "after_effect"          // it has run, nothing is written
	MidCheckpoint      Point = "mid_checkpoint"        // a commit is half written
	AfterCheckpoint    Point = "after_checkpoint"      // it is durable
	BeforeOutboxSend   Point = "before_outbox_send"    // a delivery is about to be sent
	After2xxBeforeMark Point = "after_2xx_before_mark" // the receiver accepted it, nothing is written
	DuringMigration    Point = "during_migration"      // the file exists, the tables do not
	BeforeRewrap       Point = "before_rewrap"         // a new master key is written, nothing is wrapped with it
	AfterRewrap        Point = "after_rewrap"          // all data keys are wrapped with it, it is not active yet
	MidImport          Point = "mid_import"            // some rows of a table are durable, the import is incomplete
	BeforeImportEnd    Point = "before_import_end"     // all rows are durable, the import is not marked complete
	BeforeTickCommit   Point = "before_tick_commit"    // a schedule is about to advance to its next time
	AfterTickCommit    Point = "after_tick_commit"     // it has advanced, and its run is written
	BeforePollCommit   Point = "before_poll_commit"    // new items are about to start runs
	AfterPollCommit    Point = "after_poll_commit"     // the runs are written, the items marked as seen
	BeforeRenewal      Point = "before_renewal"        // a token is about to be renewed
	AfterRenewal       Point = "after_renewal"         // the service has issued it, nothing is written
	AfterRenewalStored Point = "after_renewal_stored"  // it is durable, nobody has used it
	BeforeRegistration Point = "before_registration"   // a service is about to be told a URL
	AfterRegistration  Point = "after_registration"    // it knows the URL, nothing is written
	AtStart            Point = "at_start"              // the process has started
	BeforeFlush        Point = "before_flush"          // SQLite: a group of transactions is about to be flushed; if it fails, the disk is full
	DuringCheck        Point = "during_check"          // SQLite: a check after a crash holds a read transaction
	MidCopy            Point = "mid_copy"              // SQLite: a backup of a running server is about to copy more pages
)
