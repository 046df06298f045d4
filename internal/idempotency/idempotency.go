// Package idempotency implements the Idempotency-Key header: a request that is
// sent twice takes effect once, and the second response repeats the first. The
// response is encrypted and saved in the same transaction as the effect, so that
// neither can exist without the other.
package idempotency

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/vault"
)

// Life is how long a response is stored.
const Life = 24 * time.Hour

// MaxKey is the maximum length of a key.
const MaxKey = 255

// Response is a response, saved for replay.
type Response struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header,omitempty"`
	Body   []byte            `json:"body,omitempty"` // exactly as it was written
}

// Record is a saved response. Of the key only a hash is stored, and of the body a
// fingerprint.
type Record struct {
	WorkspaceID string
	Route       string
	KeyHash     string
	Fingerprint []byte
	Sealed      []byte
	ExpiresAt   time.Time
}

// Store stores records.
type Store interface {
	// IdempotencyRecord returns the record with the same key, or nil if there is
	// none that has not expired.
	IdempotencyRecord(ctx context.Context, record Record, now time.Time) (*Record, error)
	// WithIdempotencyKey returns the existing record, if there is one that has not
	// expired. Otherwise it calls effect and commits its writes and the record,
	// with the sealed response, in one transaction.
	WithIdempotencyKey(ctx context.Context, record Record, now time.Time, effect func(context.Context, txn.Tx) (sealed []byte, err error)) (*Record, error)
}

// Vault encrypts saved responses, since some contain secrets that are shown only
// once, and computes the fingerprints of bodies.
type Vault interface {
	Seal(ctx context.Context, ref vault.Ref, plain []byte) ([]byte, error)
	Open(ctx context.Context, ref vault.Ref, sealed []byte) ([]byte, error)
	Sign(ctx context.Context, workspaceID, purpose string, text []byte) ([]byte, error)
}

// Service saves and replays responses.
type Service struct {
	store Store
	vault Vault
}

// NewService returns a Service that uses the store.
func NewService(store Store, vault Vault) *Service { return &Service{store: store, vault: vault} }

// Request identifies a request that must take effect only once.
type Request struct {
	Route string // method and path with its values
	Key   string
	Body  []byte
}

// Find returns the saved response of a request, or nil if there is none.
func (s *Service) Find(ctx context.Context, actor auth.Actor, req Request) (*Response, error) {
	record, err := s.newRecord(ctx, actor, req)
	if err != nil {
		return nil, err
	}
	earlier, err := s.store.IdempotencyRecord(ctx, record, clock.Now())
	if err != nil || earlier == nil {
		return nil, err
	}
	response, err := s.replay(ctx, *earlier, record, req)
	return &response, err
}

// Do runs the effect and saves its response, in one transaction. If the same
// request was made before, Do returns the saved response and true instead. It does
// not save an error of the effect. The effect must be quick: other writers wait
// for it.
func (s *Service) Do(ctx context.Context, actor auth.Actor, req Request, effect func(context.Context, txn.Tx) (Response, error)) (Response, bool, error) {
	record, err := s.newRecord(ctx, actor, req)
	if err != nil {
		return Response{}, false, err
	}
	var answer Response
	earlier, err := s.store.WithIdempotencyKey(ctx, record, clock.Now(), func(ctx context.Context, tx txn.Tx) ([]byte, error) {
		var err error
		if answer, err = effect(ctx, tx); err != nil {
			return nil, err
		}
		return s.seal(ctx, record, answer)
	})
	if err != nil || earlier == nil {
		return answer, false, err
	}
	answer, err = s.replay(ctx, *earlier, record, req)
	return answer, true, err
}

func (s *Service) replay(ctx context.Context, earlier, record Record, req Request) (Response, error) {
	if !earlier.isFor(req.Body, record.Fingerprint) {
		return Response{}, fault.New(fault.IdempotencyKeyReused,
			"the Idempotency-Key %q was used before with another body", req.Key)
	}
	return s.open(ctx, earlier)
}

func (s *Service) newRecord(ctx context.Context, actor auth.Actor, req Request) (Record, error) {
	key := sha256.Sum256([]byte(req.Key))
	fingerprint, err := s.fingerprint(ctx, actor.Workspace.ID, req.Body)
	return Record{
		WorkspaceID: actor.Workspace.ID, Route: req.Route,
		KeyHash: hex.EncodeToString(key[:]), Fingerprint: fingerprint, ExpiresAt: clock.Now().Add(Life),
	}, err
}

// keyedFingerprint is the first byte of a fingerprint that is a MAC: with a plain hash, whoever has
// a copy of the database could confirm guesses about the body. Earlier releases stored the plain
// SHA-256, which is a byte shorter.
const keyedFingerprint = 1

// fingerprint identifies a body. A body can contain a secret that is easy to guess, and
// whoever has a copy of the database could check guesses against a plain hash. The key
// of the MAC is that of the workspace, which all nodes share and which remains the same
// when the master key is rotated.
func (s *Service) fingerprint(ctx context.Context, workspaceID string, body []byte) ([]byte, error) {
	mac, err := s.vault.Sign(ctx, workspaceID, "idempotency fingerprint", body)
	if err != nil {
		return nil, err
	}
	return append([]byte{keyedFingerprint}, mac...), nil
}

// isFor reports whether the record was saved for a request with the body, whose
// fingerprint is given.
func (r Record) isFor(body, fingerprint []byte) bool {
	if len(r.Fingerprint) == sha256.Size { // saved by an earlier release
		sum := sha256.Sum256(body)
		fingerprint = sum[:]
	}
	return hmac.Equal(r.Fingerprint, fingerprint)
}

func (s *Service) seal(ctx context.Context, record Record, answer Response) ([]byte, error) {
	plain, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("encode an answer to save: %w", err)
	}
	return s.vault.Seal(ctx, record.ref(), plain)
}

func (s *Service) open(ctx context.Context, record Record) (Response, error) {
	plain, err := s.vault.Open(ctx, record.ref(), record.Sealed)
	if err != nil {
		return Response{}, err
	}
	var answer Response
	if err := json.Unmarshal(plain, &answer); err != nil {
		return Response{}, fmt.Errorf("decode a saved answer: %w", err)
	}
	return answer, nil
}

func (r Record) ref() vault.Ref {
	return vault.Ref{Workspace: r.WorkspaceID, Table: "idempotency", ID: r.Route + "|" + r.KeyHash}
}
