package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

// Record is an entry as it is stored, with its place in the chain of its
// workspace.
type Record struct {
	Entry
	// RawDetails is the stored JSON of Details, which a Record leaves nil.
	RawDetails string
	Seq        int64 // 1 for the first entry
	Hash       []byte
}

// Chain is the state of the chain of a workspace: the seq and hash of the last
// entry, and of the last entry that was purged.
type Chain struct {
	Seq        int64
	Hash       []byte
	PurgedSeq  int64
	PurgedHash []byte
}

// NewChain returns the chain of a workspace without entries.
func NewChain() Chain {
	none := make([]byte, sha256.Size)
	return Chain{Hash: none, PurgedHash: none}
}

// Sum returns the hash of the record: the SHA-256 of the hash of the previous
// record and of the fields of this one, each as a netstring, so that no two
// records have the same encoding.
func (r Record) Sum(previous []byte) []byte {
	h := sha256.New()
	for _, field := range []string{
		string(previous), strconv.FormatInt(r.Seq, 10), r.ID, r.WorkspaceID, strconv.FormatInt(r.At.UnixMicro(), 10),
		r.ActorType, r.ActorID, r.Action, r.TargetType, r.TargetID, r.RawDetails, r.RequestID,
	} {
		_, _ = io.WriteString(h, strconv.Itoa(len(field))+":"+field+",")
	}
	return h.Sum(nil)
}

// Link is the place and hash of an entry, as an earlier verification returned it.
type Link struct {
	Seq  int64
	Hash []byte
}

// ChainStore reads chains.
type ChainStore interface {
	// AuditChain returns up to limit records of a workspace in the order of their
	// seq, starting after the given one, and the chain at that moment. It returns a
	// nil chain if the workspace has none.
	AuditChain(ctx context.Context, workspaceID string, after int64, limit int) (*Chain, []Record, error)
	// UnchainedEntries counts the entries of a workspace that are not in its chain, and
	// returns the newest of them, or nil if there are none.
	UnchainedEntries(ctx context.Context, workspaceID string) (count int, newest *Entry, err error)
}

// Verification is the result of verifying the chain of a workspace.
type Verification struct {
	// Entries is the number of intact entries, from the oldest on.
	Entries int
	// Unchained is the number of entries that a release without chains wrote.
	Unchained int
	// Link is that of the last intact entry.
	Link
	// Broken is nil if the chain is intact.
	Broken *Break

	start time.Time // of the oldest intact entry
}

// Break is the first entry of a chain that is not as it was written, or an entry outside
// of the chain that should be in it.
type Break struct {
	Seq     int64  // 0: outside
	EntryID string // "" if the entry is missing
	Reason  string
}

// verifyPage is the number of records that are read at a time.
const verifyPage = 500

// Verify checks the chain of a workspace and, unless expected is nil, that it
// contains the expected link. Entries may be written and purged meanwhile.
func Verify(ctx context.Context, store ChainStore, workspaceID string, expected *Link) (Verification, error) {
	unchained, newest, err := store.UnchainedEntries(ctx, workspaceID)
	if err != nil {
		return Verification{}, err
	}
	v := Verification{Unchained: unchained, Link: Link{Hash: NewChain().Hash}}
	for {
		chain, records, err := store.AuditChain(ctx, workspaceID, v.Seq, verifyPage)
		if err != nil {
			return v, err
		}
		if chain == nil {
			if v.Seq > 0 || len(records) > 0 || expected != nil {
				v.Broken = &Break{Seq: v.Seq + 1, Reason: "the record of the last entry's hash is missing"}
			}
			return v, nil
		}
		if v.follow(*chain, records, expected); v.Broken != nil {
			return v, nil
		}
		if len(records) < verifyPage {
			v.checkEnd(*chain, expected)
			v.checkUnchained(newest)
			return v, nil
		}
	}
}

func (v *Verification) follow(chain Chain, records []Record, expected *Link) {
	if chain.PurgedSeq > v.Seq {
		if expected != nil && expected.Seq > v.Seq && expected.Seq <= chain.PurgedSeq {
			v.Broken = &Break{Seq: expected.Seq, Reason: "it was purged, so its hash cannot be compared: expect an entry of the last year"}
			return
		}
		v.Link = Link{chain.PurgedSeq, chain.PurgedHash}
	}
	for _, r := range records {
		switch {
		case r.Seq <= v.Seq && r.Seq <= chain.PurgedSeq:
			v.Broken = &Break{r.Seq, r.ID, "it was purged, but is still there"}
		case r.Seq != v.Seq+1:
			v.Broken = &Break{Seq: v.Seq + 1, Reason: "it is missing"}
		case !bytes.Equal(r.Hash, r.Sum(v.Hash)):
			v.Broken = &Break{r.Seq, r.ID, "it or the hash of the previous entry was changed"}
		// The last entry that is old enough to be purged is kept, to show that those
		// before it were.
		case v.Seq == chain.PurgedSeq && v.Seq > 0 && clock.Now().Sub(r.At) <= Retention:
			v.Broken = &Break{Seq: v.Seq, Reason: "it was removed, but was not old enough to be purged"}
		case expected != nil && expected.Seq == r.Seq && !bytes.Equal(expected.Hash, r.Hash):
			v.Broken = &Break{r.Seq, r.ID, "its hash is not the expected one"}
		default:
			v.accept(r)
			continue
		}
		return
	}
}

func (v *Verification) accept(r Record) {
	if v.Entries == 0 {
		v.start = r.At
	}
	v.Link = Link{r.Seq, r.Hash}
	v.Entries++
}

// checkEnd compares the last record with the chain.
func (v *Verification) checkEnd(chain Chain, expected *Link) {
	last := chain.Seq
	if expected != nil {
		last = max(last, expected.Seq)
	}
	switch {
	case v.Seq < last:
		v.Broken = &Break{Seq: v.Seq + 1, Reason: fmt.Sprintf("it and all later ones up to %d are missing", last)}
	case v.Seq == chain.PurgedSeq && v.Seq > 0:
		v.Broken = &Break{Seq: v.Seq, Reason: "it was removed, but the last entry is never purged"}
	case v.Seq > chain.Seq || !bytes.Equal(v.Hash, chain.Hash):
		v.Broken = &Break{Seq: v.Seq, Reason: "it is not the entry that was written last"}
	}
}

// checkUnchained checks that the newest entry outside of the chain is older than the
// chain: entries are chained since the release that introduced chains.
func (v *Verification) checkUnchained(newest *Entry) {
	if v.Broken == nil && newest != nil && v.Entries > 0 && !newest.At.Before(v.start) {
		v.Broken = &Break{EntryID: newest.ID, Reason: "it is not in the chain, although the chain had begun when it was written"}
	}
}
