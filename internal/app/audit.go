package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/audit"
)

// AuditVerification is the result of verifying the audit log of a workspace.
type AuditVerification struct {
	WorkspaceID string `json:"workspace_id"`
	// Entries counts the intact entries, Unchained those without a hash.
	Entries   int `json:"entries"`
	Unchained int `json:"unchained"`
	// LastSeq and LastHash are those of the last intact entry.
	LastSeq  int64       `json:"last_seq"`
	LastHash string      `json:"last_hash"`
	Broken   *AuditBreak `json:"broken"`
}

// AuditBreak is the first entry that was changed or removed, or one that should be in
// the chain.
type AuditBreak struct {
	Seq     int64  `json:"seq,omitempty"` // 0: outside of the chain
	EntryID string `json:"entry_id,omitempty"`
	Reason  string `json:"reason"`
}

// VerifyAudit verifies the audit log of a workspace, or of all if the id is empty.
// With expected, the number and hash of an entry such as 12:4fd3…, the log of the
// workspace must contain that entry.
func (a *Admin) VerifyAudit(ctx context.Context, workspaceID, expected string) ([]AuditVerification, error) {
	link, err := parseLink(expected)
	if err != nil {
		return nil, err
	}
	if link != nil && workspaceID == "" {
		return nil, errors.New("--expect needs --workspace: each workspace has its own audit log")
	}
	ids := []string{workspaceID}
	if workspaceID != "" {
		if _, err := a.actor(ctx, workspaceID); err != nil {
			return nil, cliError(err)
		}
	} else {
		workspaces, err := a.Workspaces(ctx)
		if err != nil {
			return nil, err
		}
		ids = nil
		for _, w := range workspaces {
			ids = append(ids, w.ID)
		}
	}
	results := []AuditVerification{}
	for _, id := range ids {
		v, err := audit.Verify(ctx, a.core.store.Audit, id, link)
		if err != nil {
			return nil, err
		}
		result := AuditVerification{WorkspaceID: id, Entries: v.Entries, Unchained: v.Unchained, LastSeq: v.Seq, LastHash: hex.EncodeToString(v.Hash)}
		if v.Broken != nil {
			result.Broken = &AuditBreak{v.Broken.Seq, v.Broken.EntryID, v.Broken.Reason}
		}
		results = append(results, result)
	}
	return results, nil
}

// parseLink parses the number and hash of an entry. It returns nil for "".
func parseLink(text string) (*audit.Link, error) {
	if text == "" {
		return nil, nil
	}
	number, hash, _ := strings.Cut(text, ":")
	seq, badSeq := strconv.ParseInt(number, 10, 64)
	sum, badHash := hex.DecodeString(hash)
	if badSeq != nil || badHash != nil || seq < 1 || len(sum) != sha256.Size {
		return nil, fmt.Errorf("--expect: %q is not the number and hash of an entry, such as 12:%s", text, strings.Repeat("0f", sha256.Size))
	}
	return &audit.Link{Seq: seq, Hash: sum}, nil
}
