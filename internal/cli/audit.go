package cli

import (
	"fmt"
	"strconv"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type auditCommand struct {
	Verify verifyAuditCommand `cmd:"" help:"Check that no entry of the audit log was changed or removed."`
}

type verifyAuditCommand struct {
	Workspace string `placeholder:"ID" help:"The workspace (default: all)."`
	Expect    string `placeholder:"NUMBER:HASH" help:"An entry that the audit log of the workspace must contain, as an earlier verification printed it."`
	JSON      bool   `help:"Print JSON."`
}

// Run verifies audit logs.
func (c *verifyAuditCommand) Run(con *console, data config.Data) error {
	return withAdmin(con, data, func(admin *app.Admin) error {
		results, err := admin.VerifyAudit(con, c.Workspace, c.Expect)
		if err != nil {
			return err
		}
		broken := 0
		rows := [][]string{{"WORKSPACE", "ENTRIES", "UNCHAINED", "LAST", "HASH", "RESULT"}}
		for _, r := range results {
			rows = append(rows, []string{r.WorkspaceID, strconv.Itoa(r.Entries), strconv.Itoa(r.Unchained), strconv.FormatInt(r.LastSeq, 10), r.LastHash, describeBreak(r.Broken)})
			if r.Broken != nil {
				broken++
			}
		}
		if err := printResult(con, c.JSON, results, rows); err != nil {
			return err
		}
		if broken > 0 {
			return fmt.Errorf("the audit log of %d of %d workspaces is not as it was written: compare it with a backup", broken, len(results))
		}
		return nil
	})
}

func describeBreak(b *app.AuditBreak) string {
	switch {
	case b == nil:
		return "intact"
	case b.Seq == 0:
		return fmt.Sprintf("broken at %s: %s", b.EntryID, b.Reason)
	case b.EntryID == "":
		return fmt.Sprintf("broken at entry %d: %s", b.Seq, b.Reason)
	}
	return fmt.Sprintf("broken at entry %d (%s): %s", b.Seq, b.EntryID, b.Reason)
}
