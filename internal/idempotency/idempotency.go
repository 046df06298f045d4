// Package idempotency owns the promise of the Idempotency-Key header: the same
// request sent twice has its effect once, and the second answer is the first
// one again. The answer is sealed and saved in the transaction of the effect,
// so that there is no moment in which only one of them exists.
package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/vault"
)

// Life is how long an answer is kept.
const Life = 24 * time.Hour

// MaxKey is the longest key.
const MaxKey = 255

// Answer is a response as it is saved and replayed.
type Answer struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header,omitempty"`
	Body   []byte            `json:"body,omitempty"` // exactly as it was written
}

// Record is a saved answer. Its key is only kept as a hash.
type Record struct {
	WorkspaceID string
	Route       string
	KeyHash     string
	Fingerprint []byte
	Sealed      []byte
	ExpiresAt   time.Time
}

// Store keeps records.
type Store interface {
	// Once returns the record that is already there and not expired. Otherwise
	// it calls effect, whose writes and the sealed answer it returns are
	// committed together with the record, or not at all.
	Once(ctx context.Context, record Record, now time.Time, effect func(context.Context) (sealed []byte, err error)) (*Record, error)
}

// Sealer keeps answers secret at rest: some hold values that are shown once.
type Sealer interface {
	Seal(ctx context.Context, ref vault.Ref, plain []byte) ([]byte, error)
	Open(ctx context.Context, ref vault.Ref, sealed []byte) ([]byte, error)
}

// Service remembers answers.
type Service struct {
	store Store
	vault Sealer
}

// NewService makes a service on a store.
func NewService(store Store, vault Sealer) *Service { return &Service{store: store, vault: vault} }

// Request names what must happen only once.
type Request struct {
	Route string // method and path with its values
	Key   string
	Body  []byte
}

// Do runs the effect unless the same request was answered before; then it
// returns that answer and true. A failure of the effect is not saved.
func (s *Service) Do(ctx context.Context, actor auth.Actor, req Request, effect func(context.Context) (Answer, error)) (Answer, bool, error) {
	record := newRecord(actor, req)
	var answer Answer
	earlier, err := s.store.Once(ctx, record, clock.Now(), func(ctx context.Context) ([]byte, error) {
		var err error
		if answer, err = effect(ctx); err != nil {
			return nil, err
		}
		return s.seal(ctx, record, answer)
	})
	if err != nil || earlier == nil {
		return answer, false, err
	}
	if string(earlier.Fingerprint) != string(record.Fingerprint) {
		return Answer{}, false, fault.New(fault.IdempotencyKeyReused,
			"the Idempotency-Key %q was used before with another body", req.Key)
	}
	answer, err = s.open(ctx, *earlier)
	return answer, true, err
}

func newRecord(actor auth.Actor, req Request) Record {
	key, body := sha256.Sum256([]byte(req.Key)), sha256.Sum256(req.Body)
	return Record{
		WorkspaceID: actor.Workspace.ID, Route: req.Route,
		KeyHash: hex.EncodeToString(key[:]), Fingerprint: body[:], ExpiresAt: clock.Now().Add(Life),
	}
}

func (s *Service) seal(ctx context.Context, record Record, answer Answer) ([]byte, error) {
	plain, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("encode an answer to save: %w", err)
	}
	return s.vault.Seal(ctx, record.ref(), plain)
}

func (s *Service) open(ctx context.Context, record Record) (Answer, error) {
	plain, err := s.vault.Open(ctx, record.ref(), record.Sealed)
	if err != nil {
		return Answer{}, err
	}
	var answer Answer
	if err := json.Unmarshal(plain, &answer); err != nil {
		return Answer{}, fmt.Errorf("decode a saved answer: %w", err)
	}
	return answer, nil
}

func (r Record) ref() vault.Ref {
	return vault.Ref{Workspace: r.WorkspaceID, Table: "idempotency", ID: r.Route + "|" + r.KeyHash}
}
