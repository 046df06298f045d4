// Package failpoint names the moments at which tests let the process die, panic
// or pause. A normal build has none of it: Hit is empty and costs nothing. Built
// with the tag failpoint, the environment variable FP says what happens where.
package failpoint

// Point is a moment.
type Point string

// The moments that matter.
const (
	BeforeAcceptCommit Point = "before_accept_commit"  // a run is about to be written
	AfterAcceptCommit  Point = "after_accept_commit"   // it is durable, nobody has been told
	AfterClaim         Point = "after_claim"           // a node owns the run
	BeforeEffect       Point = "before_effect"         // an action is about to be run
	AfterEffect        Point = "after_effect"          // it has been, nothing is written
	MidCheckpoint      Point = "mid_checkpoint"        // a commit is half written
	AfterCheckpoint    Point = "after_checkpoint"      // it is durable
	BeforeOutboxSend   Point = "before_outbox_send"    // a delivery is about to be sent
	After2xxBeforeMark Point = "after_2xx_before_mark" // its receiver has it, nothing is written
	DuringMigration    Point = "during_migration"      // the file is there, the tables are not
	BeforeRewrap       Point = "before_rewrap"         // a new master key is written, nothing is sealed with it
	AfterRewrap        Point = "after_rewrap"          // all is, the key is not in force yet
	MidImport          Point = "mid_import"            // some rows of a table are durable, the installation is not whole
	BeforeImportEnd    Point = "before_import_end"     // all of them are, and it still is not
	BeforeTickCommit   Point = "before_tick_commit"    // a schedule is about to be moved on
	AfterTickCommit    Point = "after_tick_commit"     // it is, and so is its run
	BeforePollCommit   Point = "before_poll_commit"    // new items are about to start runs
	AfterPollCommit    Point = "after_poll_commit"     // they have, and are seen
	AtStart            Point = "at_start"              // the process has begun
)
