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
	minPassword = 10  // characters
	maxPassword = 200 // bytes

	saltBytes = 16
	hashBytes = 32
	// hashesAtOnce bounds the memory that passwords take, waitingHashes how many
	// wait for that: about two seconds of work.
	hashesAtOnce  = 2
	waitingHashes = 32
)

// cost is what argon2id takes for one password. It stands in each hash, so that
// it can change: a hash of another cost is made anew at the next sign-in.
type cost struct {
	memory  uint32 // KiB
	passes  uint32
	threads uint8
}

var current = cost{memory: 64 << 10, passes: 2, threads: 1}

// most is what a stored hash may ask for.
var most = cost{memory: 256 << 10, passes: 16, threads: 16}

// checkPassword says whether a password may be chosen.
func checkPassword(password, email string) error {
	const pointer = "/password"
	local, _, _ := strings.Cut(email, "@")
	folded := strings.ToLower(password)
	switch {
	case utf8.RuneCountInString(password) < minPassword:
		return fault.Field(pointer, "must have at least %d characters", minPassword)
	case len(password) > maxPassword:
		return fault.Field(pointer, "must have at most %d bytes", maxPassword)
	case folded == email || folded == local || distinct(password) < 4:
		return fault.Field(pointer, "is too easy to guess")
	}
	return nil
}

func distinct(text string) int {
	seen := map[rune]bool{}
	for _, r := range text {
		seen[r] = true
	}
	return len(seen)
}

// hasher makes and checks hashes, a few at a time.
type hasher struct {
	slots   chan struct{}
	waiting atomic.Int32
	// nobody is checked where there is no password, so that the answer takes as
	// long as where there is one.
	nobody string
}

func newHasher() *hasher {
	salt := make([]byte, saltBytes)
	return &hasher{slots: make(chan struct{}, hashesAtOnce), nobody: encode(current, salt, make([]byte, hashBytes))}
}

// hash makes the PHC string of a password.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt)
	key, err := h.derive(ctx, current, salt, hashBytes, password)
	if err != nil {
		return "", err
	}
	return encode(current, salt, key), nil
}

// verify tells whether a password fits a hash, and whether the hash should be
// made anew. Without a hash it takes as long, and nothing fits.
func (h *hasher) verify(ctx context.Context, hash, password string) (fits, outdated bool, err error) {
	given := hash
	if hash == "" {
		given = h.nobody
	}
	c, salt, want, err := decode(given)
	if err != nil {
		return false, false, err
	}
	if len(password) > maxPassword {
		password = "" // no such password was ever taken
	}
	key, err := h.derive(ctx, c, salt, len(want), password)
	if err != nil {
		return false, false, err
	}
	fits = subtle.ConstantTimeCompare(key, want) == 1 && hash != ""
	return fits, fits && c != current, nil
}

// derive waits for its turn. Whoever comes when too many wait is sent away.
func (h *hasher) derive(ctx context.Context, c cost, salt []byte, length int, password string) ([]byte, error) {
	defer h.waiting.Add(-1)
	if h.waiting.Add(1) > waitingHashes+hashesAtOnce {
		return nil, fault.New(fault.RateLimited, "too many people sign in at this moment").After(2 * time.Second)
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if still, ok := ctx.Value(stillKey{}).(func() error); ok {
		if err := still(); err != nil {
			return nil, err
		}
	}
	// What it took is garbage now, and a heap that may grow fivefold before it is
	// collected would keep a dozen times as much.
	defer runtime.GC()
	// The same characters may be typed in more than one form.
	return argon2.IDKey([]byte(norm.NFC.String(password)), salt, c.passes, c.memory, c.threads, uint32(length)), nil
}

type stillKey struct{}

// asLongAs is a context in which a password is worked on only if, when its turn
// comes, there is still a reason to: many may wait with one link that works once.
func asLongAs(ctx context.Context, still func() error) context.Context {
	return context.WithValue(ctx, stillKey{}, still)
}

func encode(c cost, salt, key []byte) string {
	text := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.memory, c.passes, c.threads, text.EncodeToString(salt), text.EncodeToString(key))
}

func decode(hash string) (c cost, salt, key []byte, err error) {
	parts := strings.Split(hash, "$")
	version := 0
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return c, nil, nil, fmt.Errorf("a stored password is in no known form")
	}
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &c.memory, &c.passes, &c.threads); err != nil || version != argon2.Version {
		return c, nil, nil, fmt.Errorf("a stored password has the parameters %q", parts[2]+"$"+parts[3])
	}
	if c.memory > most.memory || c.passes < 1 || c.passes > most.passes || c.threads < 1 || c.threads > most.threads {
		return c, nil, nil, fmt.Errorf("a stored password asks for too much: %q", parts[3])
	}
	if salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err == nil {
		key, err = base64.RawStdEncoding.DecodeString(parts[5])
	}
	if err != nil || len(key) < 16 || len(key) > 64 {
		return c, nil, nil, fmt.Errorf("a stored password is damaged")
	}
	return c, salt, key, nil
}
