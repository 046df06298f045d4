package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"github.com/stepmill/stepmill/internal/fault"
)

const (
	minPassword = 12  // characters
	maxPassword = 200 // bytes

	saltBytes = 16
	hashBytes = 32
	// maxConcurrentHashes bounds the memory that hashing takes, because argon2id allocates all of
	// it at once. maxWaitingHashes bounds the queue to about two seconds of work: without it, a
	// flood of sign-ins would keep everyone waiting.
	maxConcurrentHashes = 2
	maxWaitingHashes    = 32
)

// Cost holds the parameters of argon2id. Each hash contains the cost it was made
// with; a hash of another cost than the current one is replaced at the next sign-in.
type Cost struct {
	Memory  uint32 // KiB
	Passes  uint32
	Threads uint8
}

// DefaultCost returns the cost of new hashes if WithCost is not given.
func DefaultCost() Cost { return Cost{Memory: 64 << 10, Passes: 2, Threads: 1} }

// gcThreshold is the memory of a hash, in KiB, that triggers a garbage collection. Without one
// after each hash, the heap could grow to several times what all hashes in progress need.
const gcThreshold = 1 << 10

var maxCost = Cost{Memory: 256 << 10, Passes: 16, Threads: 16}

// normalize returns a password in NFC, in which it is measured and hashed:
// the same characters may be encoded in more than one way.
func normalize(password string) string { return norm.NFC.String(password) }

// checkPassword rejects a new password that is too short, too long or too easy
// to guess. Passwords that were set under earlier rules keep working.
func checkPassword(password, email, name string) error {
	const pointer = "/password"
	password = normalize(password)
	switch {
	case utf8.RuneCountInString(password) < minPassword:
		return fault.Field(pointer, "must have at least %d characters", minPassword)
	case len(password) > maxPassword:
		return fault.Field(pointer, "must have at most %d bytes", maxPassword)
	case guessBits(password, knownWords(email, name)) < minGuessBits:
		return fault.Field(pointer, "is too easy to guess: choose one that is not made of common words, sequences, repetitions, your name or your e-mail address")
	}
	return nil
}

// hasher computes and verifies password hashes, a few at a time.
type hasher struct {
	cost    Cost // of new hashes
	slots   chan struct{}
	waiting atomic.Int32
	// dummy is verified if there is no password, so that the response takes as long
	// as with one.
	dummy string
}

func newHasher(c Cost) *hasher {
	salt := make([]byte, saltBytes)
	return &hasher{cost: c, slots: make(chan struct{}, maxConcurrentHashes), dummy: encode(c, salt, make([]byte, hashBytes))}
}

// hash returns the PHC string of a password.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt)
	key, err := h.derive(ctx, h.cost, salt, hashBytes, password)
	if err != nil {
		return "", err
	}
	return encode(h.cost, salt, key), nil
}

// verify reports whether a password matches a hash, and whether the hash has an
// outdated cost. If the hash is empty, it takes as long and nothing matches.
func (h *hasher) verify(ctx context.Context, hash, password string) (matches, outdated bool, err error) {
	given := hash
	if hash == "" {
		given = h.dummy
	}
	c, salt, want, err := decode(given)
	if err != nil {
		return false, false, err
	}
	if password = normalize(password); len(password) > maxPassword {
		password = "" // checkPassword has never accepted it
	}
	key, err := h.derive(ctx, c, salt, len(want), password)
	if err != nil {
		return false, false, err
	}
	matches = subtle.ConstantTimeCompare(key, want) == 1 && hash != ""
	return matches, matches && c != h.cost, nil
}

// derive waits for a slot and hashes the password. It rejects the request if too
// many are waiting.
func (h *hasher) derive(ctx context.Context, c Cost, salt []byte, length int, password string) ([]byte, error) {
	defer h.waiting.Add(-1)
	if h.waiting.Add(1) > maxWaitingHashes+maxConcurrentHashes {
		return nil, fault.New(fault.RateLimited, "too many people are signing in; try again in a few seconds").After(2 * time.Second)
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if recheck, ok := ctx.Value(recheckKey{}).(func() error); ok {
		if err := recheck(); err != nil {
			return nil, err
		}
	}
	if c.Memory >= gcThreshold {
		// Collect the memory now: the heap may grow fivefold before the next
		// collection, which would hold a dozen times as much.
		defer runtime.GC()
	}
	return argon2.IDKey([]byte(normalize(password)), salt, c.Passes, c.Memory, c.Threads, uint32(length)), nil
}

type recheckKey struct{}

// withRecheck returns a context in which recheck runs before a password is
// hashed. Its error cancels the hashing: many requests may wait with the same
// one-time link, which only one of them can use.
func withRecheck(ctx context.Context, recheck func() error) context.Context {
	return context.WithValue(ctx, recheckKey{}, recheck)
}

func encode(c Cost, salt, key []byte) string {
	text := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.Memory, c.Passes, c.Threads, text.EncodeToString(salt), text.EncodeToString(key))
}

func decode(hash string) (c Cost, salt, key []byte, err error) {
	parts := strings.Split(hash, "$")
	version := 0
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return c, nil, nil, fmt.Errorf("a stored password hash has an unknown format")
	}
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &c.Memory, &c.Passes, &c.Threads); err != nil || version != argon2.Version {
		return c, nil, nil, fmt.Errorf("a stored password hash has unsupported parameters %q", parts[2]+"$"+parts[3])
	}
	if c.Memory > maxCost.Memory || c.Passes < 1 || c.Passes > maxCost.Passes || c.Threads < 1 || c.Threads > maxCost.Threads {
		return c, nil, nil, fmt.Errorf("the cost of a stored password hash is out of range: %q", parts[3])
	}
	if salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err == nil {
		key, err = base64.RawStdEncoding.DecodeString(parts[5])
	}
	if err != nil || len(key) < 16 || len(key) > 64 {
		return c, nil, nil, fmt.Errorf("a stored password hash is corrupt")
	}
	return c, salt, key, nil
}
