package storetest

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
)

func testAuditChain(t *testing.T, w *harness) {
	t.Run("detects changes of rows", w.testTampering)
	t.Run("is the same for concurrent transactions", w.testConcurrentAudit)
	t.Run("can be verified after a purge", w.testPurgedChain)

	t.Run("contains text as it is stored", func(t *testing.T) {
		ws := w.workspace(t)
		entry := newEntry(ws.ID, "made", "zero \x00 and invalid \xff")
		entry.Details = map[string]any{"text": "zero \x00, invalid \xff, <b> & 😀", "number": 1e21}
		entry.RequestID = ""
		returns(w.Workspaces.InsertKey(t.Context(), newKey(ws.ID), noLimit, entry))(t, "insert a key", true)
		w.verified(t, ws, 2)
	})

	t.Run("does not contain entries of an earlier release", func(t *testing.T) {
		ws := w.workspace(t)
		w.exec(t, `INSERT INTO audit (id, workspace_id, at, actor_type, actor_id, action, target_type, target_id, details, request_id)
			VALUES ($1, $2, 1, 'user', 'u', 'made', 'thing', 'a', '{}', '')`, "aud_0"+ws.ID, ws.ID)
		equal(t, "unchained", w.verified(t, ws, 1).Unchained, 1)
		for must(w.Audit.PurgeAudit(t.Context(), time.UnixMicro(2), 100))(t) {
		}
		equal(t, "unchained", w.verified(t, ws, 1).Unchained, 0)
	})

	t.Run("does not contain what was rolled back", func(t *testing.T) {
		ws := w.workspace(t)
		returns(w.Workspaces.InsertKey(t.Context(), newKey(ws.ID), 0, newEntry(ws.ID, "made", "a")))(t, "over the limit", false)
		w.verified(t, ws, 1)
	})
}

// verified fails the test unless the chain of a workspace is intact and ends with
// the given entry.
func (w *harness) verified(t *testing.T, ws auth.Workspace, seq int64) audit.Verification {
	t.Helper()
	v := must(audit.Verify(t.Context(), w.DB.Audit, ws.ID, nil))(t)
	if v.Broken != nil {
		t.Errorf("the chain is broken: %+v", *v.Broken)
	}
	equal(t, "last entry", v.Seq, seq)
	return v
}

// chainOf creates a workspace with a chain of n entries.
func (w *harness) chainOf(t *testing.T, n int) auth.Workspace {
	t.Helper()
	ws := w.workspace(t)
	for range n - 1 {
		w.key(t, ws.ID)
	}
	return ws
}

func (w *harness) testTampering(t *testing.T) {
	for name, tc := range map[string]struct {
		statement string
		broken    int64
	}{
		"the time of an entry": {`UPDATE audit SET at = at + 1 WHERE workspace_id = $1 AND seq = 2`, 2},
		"an actor":             {`UPDATE audit SET actor_id = 'key_other' WHERE workspace_id = $1 AND seq = 3`, 3},
		"details":              {`UPDATE audit SET details = '{"a":1}' WHERE workspace_id = $1 AND seq = 4`, 4},
		"a hash":               {`UPDATE audit SET hash = (SELECT a.hash FROM audit a WHERE a.workspace_id = $1 AND a.seq = 1) WHERE workspace_id = $1 AND seq = 2`, 2},
		"the workspace":        {`UPDATE audit SET workspace_id = 'ws_other_' || id WHERE workspace_id = $1 AND seq = 3`, 3},
		"no first entry":       {`DELETE FROM audit WHERE workspace_id = $1 AND seq = 1`, 1},
		"no middle entry":      {`DELETE FROM audit WHERE workspace_id = $1 AND seq = 3`, 3},
		"no last entry":        {`DELETE FROM audit WHERE workspace_id = $1 AND seq = 4`, 4},
		"no entries":           {`DELETE FROM audit WHERE workspace_id = $1`, 1},
		"an entry outside":     {`UPDATE audit SET seq = NULL WHERE workspace_id = $1 AND seq = 2`, 2},
		"another order":        {`UPDATE audit SET seq = -seq WHERE workspace_id = $1 AND seq IN (2, 3)`, 2},
		"no end":               {`DELETE FROM audit_chains WHERE workspace_id = $1`, 1},
		"declared as purged": {`UPDATE audit_chains SET purged_seq = 2, purged_hash = (SELECT a.hash FROM audit a WHERE a.workspace_id = $1 AND a.seq = 2)
			WHERE workspace_id = $1`, 2},
	} {
		ws := w.chainOf(t, 4)
		w.verified(t, ws, 4)
		w.exec(t, tc.statement, ws.ID)
		w.exec(t, `DELETE FROM audit WHERE workspace_id = $1 AND seq <= (SELECT purged_seq FROM audit_chains c WHERE c.workspace_id = $1)`, ws.ID)
		w.exec(t, `UPDATE audit SET seq = 5 + seq WHERE workspace_id = $1 AND seq < 0`, ws.ID) // completes "another order"
		v := must(audit.Verify(t.Context(), w.DB.Audit, ws.ID, nil))(t)
		if v.Broken == nil || v.Broken.Seq != tc.broken {
			t.Errorf("%s: got %+v, want a break at %d", name, v.Broken, tc.broken)
		}
	}
}

// Entries of transactions that commit at the same time form one chain, whether
// the chain exists or not.
func (w *harness) testConcurrentAudit(t *testing.T) {
	const n = 40
	one, other := newWorkspace(), w.workspace(t)
	concurrently(t, n, func(i int) (bool, error) {
		ws := other
		if i%2 == 0 {
			ws = one
		}
		return true, w.Audit.RecordAudit(t.Context(), newEntry(ws.ID, "failed", "a"))
	})
	w.verified(t, one, n/2)
	w.verified(t, other, n/2+1)

	// A transaction may write entries of several workspaces.
	concurrently(t, n, func(i int) (bool, error) {
		entries := []audit.Entry{newEntry(one.ID, "failed", "a"), newEntry(other.ID, "failed", "a"), newEntry(one.ID, "failed", "b")}
		if i%2 == 0 {
			entries[0], entries[1] = entries[1], entries[0]
		}
		return true, w.Audit.RecordAudit(t.Context(), entries...)
	})
	w.verified(t, one, n/2+2*n)
	w.verified(t, other, n/2+1+n)
}

func (w *harness) testPurgedChain(t *testing.T) {
	ctx, ws := t.Context(), w.workspace(t)
	began := clock.Now().Add(-2 * audit.Retention)
	at := func(offset time.Duration) {
		entry := newEntry(ws.ID, "made", "a")
		entry.At = began.Add(offset)
		if err := w.Audit.RecordAudit(ctx, entry); err != nil {
			t.Fatal(err)
		}
	}
	w.exec(t, `DELETE FROM audit_chains WHERE workspace_id = $1`, ws.ID)
	w.exec(t, `DELETE FROM audit WHERE workspace_id = $1`, ws.ID)
	// The clock of one node was wrong: entries 4 and 6 seem older than their
	// predecessors.
	for _, hours := range []int{-9, -8, -7, -9, 5, -9, 6} {
		at(time.Duration(hours) * time.Hour)
	}
	for range 2 {
		for must(w.Audit.PurgeAudit(ctx, began, 2))(t) {
		}
		v := w.verified(t, ws, 7)
		equal(t, "entries", v.Entries, 4) // an entry stays as long as those before it, and the last old one
	}
	at(7 * time.Hour)
	equal(t, "entries", w.verified(t, ws, 8).Entries, 5)
	for must(w.Audit.PurgeAudit(ctx, began.Add(24*time.Hour), 100))(t) {
	}
	equal(t, "entries", w.verified(t, ws, 8).Entries, 1)
	at(8 * time.Hour)
	equal(t, "entries", w.verified(t, ws, 9).Entries, 2)
}
