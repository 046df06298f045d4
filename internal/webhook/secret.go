package webhook

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/vault"
)

const (
	hintLength = 4
	// rotationOverlap is how long the previous secret stays valid after a rotation, so that
	// receivers need not be changed at the same moment.
	rotationOverlap = 24 * time.Hour
)

// SecretRef identifies the signing secret of a webhook in the vault.
func SecretRef(w Webhook) vault.Ref {
	return vault.Ref{Workspace: w.WorkspaceID, Table: "webhooks", ID: w.ID}
}

// newSecret sets a new signing secret and returns it.
func (s *Service) newSecret(ctx context.Context, w *Webhook) (string, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	secret := secretPrefix + base64.StdEncoding.EncodeToString(key)
	sealed, err := s.vault.Seal(ctx, SecretRef(*w), []byte(secret))
	if err != nil {
		return "", err
	}
	w.SealedSecret, w.SecretHint = sealed, secret[len(secret)-hintLength:]
	return secret, nil
}

// RotateSecret replaces the signing secret and returns the new one, which is never
// returned again. The previous secret stays valid for rotationOverlap; older ones
// are no longer used.
func (s *Service) RotateSecret(ctx context.Context, actor auth.Actor, id string) (Webhook, string, error) {
	for {
		w, err := s.Get(ctx, actor, id)
		if err != nil {
			return Webhook{}, "", err
		}
		was := w.UpdatedAt
		w.UpdatedAt = clock.NowAfter(was)
		until := w.UpdatedAt.Add(rotationOverlap)
		w.OldSecret, w.OldUntil = w.SealedSecret, &until
		secret, err := s.newSecret(ctx, &w)
		if err != nil {
			return Webhook{}, "", err
		}
		entry := actor.AuditEntry("webhook.secret_rotated", "webhook", id, map[string]any{"secret_hint": w.SecretHint})
		outcome, err := s.store.UpdateWebhook(ctx, w, was, entry)
		if err != nil || outcome == Done {
			return w, secret, err
		}
	}
}

// OldSecretUntil returns when the previous secret expires, or nil if it has.
func (w Webhook) OldSecretUntil(now time.Time) *time.Time {
	if w.OldUntil == nil || !now.Before(*w.OldUntil) {
		return nil
	}
	return w.OldUntil
}
