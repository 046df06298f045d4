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
	// overlap is how long the secret before a rotation is still signed with.
	overlap = 24 * time.Hour
)

// SecretRef is where the signing secret of a webhook is sealed.
func SecretRef(w Webhook) vault.Ref {
	return vault.Ref{Workspace: w.WorkspaceID, Table: "webhooks", ID: w.ID}
}

// giveSecret gives a webhook a new signing secret and returns it.
func (s *Service) giveSecret(ctx context.Context, w *Webhook) (string, error) {
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

// RotateSecret replaces the signing secret and returns the new one, which is
// shown this once. The one that was in force until now is used beside it for a
// while; one that was replaced before that is not used any more.
func (s *Service) RotateSecret(ctx context.Context, actor auth.Actor, id string) (Webhook, string, error) {
	for {
		w, err := s.Get(ctx, actor, id)
		if err != nil {
			return Webhook{}, "", err
		}
		was := w.UpdatedAt
		w.UpdatedAt = clock.After(was)
		until := w.UpdatedAt.Add(overlap)
		w.OldSecret, w.OldUntil = w.SealedSecret, &until
		secret, err := s.giveSecret(ctx, &w)
		if err != nil {
			return Webhook{}, "", err
		}
		entry := actor.Did("webhook.secret_rotated", "webhook", id, map[string]any{"secret_hint": w.SecretHint})
		outcome, err := s.store.UpdateWebhook(ctx, w, was, entry)
		if err != nil || outcome == Done {
			return w, secret, err
		}
	}
}

// OldSecretUntil is when the secret before ceases to be used, nil: it has.
func (w Webhook) OldSecretUntil(now time.Time) *time.Time {
	if w.OldUntil == nil || !now.Before(*w.OldUntil) {
		return nil
	}
	return w.OldUntil
}
