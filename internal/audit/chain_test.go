package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/test/lane"
)

// memoryChain is the chain of one workspace.
type memoryChain struct {
	chain   *audit.Chain
	records []audit.Record
	// unchained is the newest entry outside of the chain; nil: one from before it.
	unchained *audit.Entry
	// beforeRead runs before each read.
	beforeRead func()
}

func (m *memoryChain) AuditChain(_ context.Context, _ string, after int64, limit int) (*audit.Chain, []audit.Record, error) {
	if m.beforeRead != nil {
		m.beforeRead()
	}
	sorted := slices.SortedStableFunc(slices.Values(m.records), func(a, b audit.Record) int { return int(a.Seq - b.Seq) })
	sorted = slices.DeleteFunc(sorted, func(r audit.Record) bool { return r.Seq <= after })
	return m.chain, sorted[:min(limit, len(sorted))], nil
}

// began is the time of the first entry.
var began = time.UnixMicro(1e15)

func (m *memoryChain) UnchainedEntries(context.Context, string) (int, *audit.Entry, error) {
	if m.unchained == nil {
		return 7, &audit.Entry{ID: "aud_old", At: began.Add(-time.Microsecond)}, nil
	}
	return 8, m.unchained, nil
}

func (m *memoryChain) append(n int) {
	for range n {
		m.chain.Seq++
		r := audit.Record{
			Entry: audit.Entry{
				ID: fmt.Sprintf("aud_%d", m.chain.Seq), WorkspaceID: "ws_1", At: began.Add(time.Duration(m.chain.Seq-1) * time.Microsecond), ActorType: "user", ActorID: "usr_1",
				Action: "api_key.created", TargetType: "api_key", TargetID: "key_1", RequestID: "req_1",
			},
			RawDetails: `{"name":"a"}`, Seq: m.chain.Seq,
		}
		r.Hash = r.Sum(m.chain.Hash)
		m.chain.Hash = r.Hash
		m.records = append(m.records, r)
	}
}

// purge removes the first n records.
func (m *memoryChain) purge(n int) {
	if n == 0 {
		return
	}
	last := m.records[n-1]
	m.chain.PurgedSeq, m.chain.PurgedHash = last.Seq, last.Hash
	m.records = slices.Clone(m.records[n:])
}

func newChain(entries, purged int) *memoryChain {
	none := audit.NewChain()
	m := &memoryChain{chain: &none}
	m.append(entries)
	m.purge(purged)
	return m
}

func verify(t rapid.TB, m *memoryChain) audit.Verification {
	t.Helper()
	v, err := audit.Verify(context.Background(), m, "ws_1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// An intact chain is verified, and any single change, removal or exchange of
// entries is found at the first entry that it affects.
func TestVerifyDetectsTampering(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(2, 9), rapid.IntRange(498, 1003)).Draw(t, "entries")
		purged := rapid.IntRange(0, n-2).Draw(t, "purged")
		m := newChain(n, purged)
		v := verify(t, m)
		if v.Broken != nil || v.Entries != n-purged || v.Seq != int64(n) || !bytes.Equal(v.Hash, m.chain.Hash) || v.Unchained != 7 {
			t.Fatalf("an intact chain: %+v", v)
		}
		i := rapid.IntRange(0, len(m.records)-1).Draw(t, "i")
		first := m.records[i].Seq // the first affected entry
		switch how := rapid.SampledFrom([]string{"change", "remove", "truncate", "exchange", "forge"}).Draw(t, "how"); how {
		case "change":
			changeRecord(t, &m.records[i])
		case "remove":
			m.records = slices.Delete(m.records, i, i+1)
		case "truncate":
			m.records = m.records[:i]
		case "exchange":
			j := rapid.IntRange(0, len(m.records)-2).Draw(t, "j")
			if j >= i {
				j++
			}
			first = min(first, m.records[j].Seq)
			a, b := &m.records[i], &m.records[j]
			a.Seq, b.Seq = b.Seq, a.Seq
			if rapid.Bool().Draw(t, "with hashes") {
				a.Hash, b.Hash = b.Hash, a.Hash
			}
		case "forge": // a changed entry with a matching hash breaks the next one, or the end
			previous := m.chain.PurgedHash
			if i > 0 {
				previous = m.records[i-1].Hash
			}
			m.records[i].Action = "api_key.revoked"
			m.records[i].Hash = m.records[i].Sum(previous)
			first = min(first+1, int64(n))
		}
		if v := verify(t, m); v.Broken == nil || v.Broken.Seq != first {
			t.Fatalf("entry %d is affected, got %+v", first, v.Broken)
		}
	})
}

func changeRecord(t *rapid.T, r *audit.Record) {
	texts := []*string{&r.ID, &r.WorkspaceID, &r.ActorType, &r.ActorID, &r.Action, &r.TargetType, &r.TargetID, &r.RawDetails, &r.RequestID}
	switch field := rapid.IntRange(0, len(texts)+1).Draw(t, "field"); field {
	case len(texts):
		r.At = r.At.Add(time.Microsecond)
	case len(texts) + 1:
		r.Hash = slices.Clone(r.Hash)
		r.Hash[rapid.IntRange(0, len(r.Hash)-1).Draw(t, "byte")] ^= 1
	default:
		*texts[field] += rapid.StringN(1, 3, -1).Draw(t, "suffix")
	}
}

// Moving text from one field to the next changes the hash.
func TestSumSeparatesFields(t *testing.T) {
	t.Parallel()
	a := audit.Record{Entry: audit.Entry{ActorID: "1:a", Action: "b"}}
	b := audit.Record{Entry: audit.Entry{ActorID: "1:", Action: "ab"}}
	if bytes.Equal(a.Sum(nil), b.Sum(nil)) {
		t.Error("two records have the same hash")
	}
}

// The end of a chain and its purged entries are known from its own row.
func TestVerifyChecksBothEnds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*memoryChain){
		"no row":            func(m *memoryChain) { m.chain = nil },
		"all entries":       func(m *memoryChain) { m.records = nil },
		"an earlier end":    func(m *memoryChain) { m.chain.Seq, m.chain.Hash = m.records[1].Seq, m.records[1].Hash },
		"another last hash": func(m *memoryChain) { m.chain.Hash = m.records[0].Hash },
		"another anchor":    func(m *memoryChain) { m.chain.PurgedHash = m.records[0].Hash },
		"a later anchor": func(m *memoryChain) {
			m.chain.PurgedSeq, m.chain.PurgedHash = m.records[0].Seq, m.records[0].Hash
		},
	} {
		m := newChain(5, 2)
		if change(m); verify(t, m).Broken == nil {
			t.Errorf("%s: not detected", name)
		}
	}
	if v := verify(t, newChain(3, 3)); v.Broken == nil || v.Broken.Seq != 3 {
		t.Errorf("a chain whose last entry is purged: %+v", v)
	}
	if v := verify(t, &memoryChain{}); v.Broken != nil || v.Seq != 0 {
		t.Errorf("no chain: %+v", v)
	}
}

// Entries that are declared as purged must be old, and entries outside of the chain must
// be older than the chain.
func TestVerifyChecksAges(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		age    time.Duration // of the first entry that is left
		broken bool
	}{
		"old":       {audit.Retention + time.Hour, false},
		"too young": {audit.Retention - time.Hour, true},
	} {
		m := newChain(3, 3)
		m.records = nil
		m.append(2)
		previous := m.chain.PurgedHash
		for i := range m.records {
			m.records[i].At = time.Now().Add(-tc.age)
			m.records[i].Hash = m.records[i].Sum(previous)
			previous = m.records[i].Hash
		}
		m.chain.Hash = previous
		if v := verify(t, m); (v.Broken != nil) != tc.broken || tc.broken && v.Broken.Seq != 3 {
			t.Errorf("%s: %+v", name, v.Broken)
		}
	}
	m := newChain(3, 0)
	m.unchained = &audit.Entry{ID: "aud_new", At: began}
	if v := verify(t, m); v.Broken == nil || v.Broken.EntryID != "aud_new" || v.Broken.Seq != 0 {
		t.Errorf("an entry outside of the chain: %+v", v.Broken)
	}
}

// Entries may be appended and purged while a chain is verified.
func TestVerifyDuringChanges(t *testing.T) {
	t.Parallel()
	m := newChain(1200, 0)
	reads := 0
	m.beforeRead = func() {
		if reads++; reads == 2 {
			m.append(10)
			m.purge(800)
		}
	}
	if v := verify(t, m); v.Broken != nil || v.Seq != 1210 || v.Entries != 500+410 {
		t.Errorf("got %+v", v)
	}
}

// A chain that was computed anew does not contain the hash of an earlier
// verification.
func TestVerifyExpectedLink(t *testing.T) {
	t.Parallel()
	m := newChain(6, 0)
	link := func(seq int64) audit.Link { return audit.Link{Seq: seq, Hash: m.records[seq-1].Hash} }
	third, fourth, fifth := link(3), link(4), link(5)
	forged := newChain(4, 0)
	forged.records[0].Action = "api_key.revoked"
	previous := audit.NewChain().Hash
	for i := range forged.records {
		forged.records[i].Hash = forged.records[i].Sum(previous)
		previous = forged.records[i].Hash
	}
	forged.chain.Hash = previous
	m.purge(3)
	for name, tc := range map[string]struct {
		chain    *memoryChain
		expected audit.Link
		broken   int64
	}{
		"an entry":         {m, fourth, 0},
		"the last purged":  {m, third, 3},
		"another hash":     {m, audit.Link{Seq: 4, Hash: third.Hash}, 4},
		"another anchor":   {m, audit.Link{Seq: 3, Hash: fourth.Hash}, 3},
		"a purged entry":   {m, audit.Link{Seq: 2, Hash: third.Hash}, 2},
		"a forged chain":   {forged, third, 3},
		"a shorter chain":  {forged, fifth, 5},
		"no chain":         {&memoryChain{}, third, 1},
		"none is expected": {forged, audit.Link{}, 0},
	} {
		expected := &tc.expected
		if expected.Seq == 0 {
			expected = nil
		}
		v, err := audit.Verify(t.Context(), tc.chain, "ws_1", expected)
		if err != nil || (v.Broken == nil) != (tc.broken == 0) || v.Broken != nil && v.Broken.Seq != tc.broken {
			t.Errorf("%s: got %+v, %v, want a break at %d", name, v.Broken, err, tc.broken)
		}
	}
}
