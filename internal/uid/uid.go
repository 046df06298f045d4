// Package uid owns identifiers: a prefix that names the kind, followed by a
// UUIDv7 in 26 characters of base32, so that ids of one kind sort by creation
// time.
package uid

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

// Kind is the prefix of an identifier.
type Kind string

// The kinds of things that have an identifier.
const (
	Workspace  Kind = "ws"
	Key        Kind = "key"
	Workflow   Kind = "wf"
	Run        Kind = "run"
	Webhook    Kind = "wh"
	Event      Kind = "evt"
	Delivery   Kind = "dlv"
	Node       Kind = "node"
	Audit      Kind = "aud"
	Request    Kind = "req"
	User       Kind = "usr"
	Session    Kind = "ses"
	Invitation Kind = "inv"
	Connection Kind = "conn"
	OAuthApp   Kind = "oapp"
	Table      Kind = "tbl"
	Row        Kind = "row"
	File       Kind = "file"

	Subscription Kind = "sub"
	AppCall      Kind = "call"
)

const (
	alphabet   = "0123456789abcdefghjkmnpqrstvwxyz"
	bodyLength = 26
)

// Source generates identifiers that increase strictly per kind, even within one
// millisecond and when the clock is set back. Kinds are independent of each
// other: an id generated before the clock of a shared database was known does not
// push ids of other kinds into the future.
type Source struct {
	mu   sync.Mutex
	last map[Kind][16]byte
}

// shared generates the ids of the whole process. It is process-wide on purpose:
// ids of one kind increase only if a single Source generates all of them. It is
// safe for concurrent use, and a test that needs its own order uses its own
// Source.
var shared = &Source{}

// New returns a new identifier of the kind for the current time.
func New(kind Kind) string { return shared.New(kind, clock.Now()) }

// At returns a new identifier of the kind for the given time.
func At(kind Kind, at time.Time) string { return shared.New(kind, at) }

// New returns the next identifier of the kind.
func (s *Source) New(kind Kind, at time.Time) string {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16)
	// crypto/rand.Read never fails: it crashes the process instead.
	_, _ = rand.Read(id[6:])
	setVersion(&id)

	s.mu.Lock()
	if s.last == nil {
		s.last = map[Kind][16]byte{}
	}
	if last := s.last[kind]; string(id[:6]) <= string(last[:6]) {
		id = next(last)
	}
	s.last[kind] = id
	s.mu.Unlock()
	return string(kind) + "_" + encode(id)
}

// Derived returns an identifier of the kind that depends only on the time and
// the text: the same arguments always give the same id.
func Derived(kind Kind, at time.Time, from string) string {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16)
	sum := sha256.Sum256([]byte(from))
	copy(id[6:], sum[:])
	setVersion(&id)
	return string(kind) + "_" + encode(id)
}

// LowerBound returns a string that sorts before every identifier of the kind
// generated at the given time or later, and after all earlier ones. Identifiers
// have millisecond precision, so a fraction of a millisecond is rounded up.
func LowerBound(kind Kind, at time.Time) string {
	milli := at.UnixMilli()
	if at.Nanosecond()%int(time.Millisecond) != 0 {
		milli++
	}
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(max(0, milli))<<16)
	return string(kind) + "_" + encode(id)
}

func setVersion(id *[16]byte) {
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
}

// next adds a small random number to the 62 low bits, so that ids of one
// millisecond are ordered and still hard to guess.
func next(id [16]byte) [16]byte {
	var step [4]byte
	_, _ = rand.Read(step[:])
	const mask = 1<<62 - 1
	low := binary.BigEndian.Uint64(id[8:]) & mask
	sum := low + uint64(binary.BigEndian.Uint32(step[:])) + 1
	if sum > mask {
		high := binary.BigEndian.Uint64(id[:8])
		rest := high&0x0fff + 1
		milli := high>>16 + rest>>12
		binary.BigEndian.PutUint64(id[:8], milli<<16|rest&0x0fff)
	}
	binary.BigEndian.PutUint64(id[8:], sum&mask)
	setVersion(&id)
	return id
}

// encode encodes 128 bits as 26 characters of five bits; the first holds three.
func encode(id [16]byte) string {
	high, low := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	var out [bodyLength]byte
	for i := bodyLength - 1; i >= 0; i-- {
		out[i] = alphabet[low&31]
		low = low>>5 | high<<59
		high >>= 5
	}
	return string(out[:])
}

// Valid reports whether s has the form of an identifier of the kind.
func Valid(kind Kind, s string) bool {
	return len(s) == len(kind)+1+bodyLength && IsPrefix(kind, s)
}

// IsPrefix reports whether an identifier of the kind can begin with s. The kind
// and its underscore must be part of s.
func IsPrefix(kind Kind, s string) bool {
	body, ok := strings.CutPrefix(s, string(kind)+"_")
	if !ok || len(body) > bodyLength || body != "" && body[0] > '7' {
		return false
	}
	for i := range len(body) {
		if strings.IndexByte(alphabet, body[i]) < 0 {
			return false
		}
	}
	return true
}
