package trigger

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/vault"
)

// HookPath is the path of hooks below the public URL of the service.
const HookPath = "/hooks/"

// A token consists of random characters and a checksum, so that an invalid token
// is rejected without a read of the store.
const (
	tokenBytes = 24 // 192 bits
	bodyChars  = 32
	checkChars = 4
)

// NewToken returns a new token for the URL of a hook.
func NewToken() string {
	var random [tokenBytes]byte
	_, _ = rand.Read(random[:])
	body := base64.RawURLEncoding.EncodeToString(random[:])
	return body + checksum(body)
}

func checksum(body string) string {
	sum := sha256.Sum256([]byte("hook " + body))
	return base64.RawURLEncoding.EncodeToString(sum[:3])[:checkChars]
}

// ValidToken reports whether a token has a valid checksum.
func ValidToken(token string) bool {
	return len(token) == bodyChars+checkChars && checksum(token[:bodyChars]) == token[bodyChars:]
}

// HashToken returns the hash under which a token is stored.
func HashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

func tokenRef(workspaceID, workflowID, id string) vault.Ref {
	return vault.Ref{Workspace: workspaceID, Table: "triggers", ID: workflowID + "/" + id}
}

// Address returns the URL of a webhook trigger.
func (s *Service) Address(ctx context.Context, t Trigger) (string, error) {
	if t.SealedToken == nil {
		return "", nil
	}
	token, err := s.vault.Open(ctx, tokenRef(t.WorkspaceID, t.WorkflowID, t.ID), t.SealedToken)
	if err != nil {
		return "", err
	}
	return s.base() + HookPath + string(token), nil
}

// Rotation is a new URL of a webhook trigger.
type Rotation struct {
	trigger Trigger
	hash    []byte
}

// PrepareRotate prepares a new URL for a webhook trigger.
func (s *Service) PrepareRotate(ctx context.Context, actor auth.Actor, workflowID, id string) (Rotation, error) {
	t, err := s.webhook(ctx, actor, workflowID, id)
	if err != nil {
		return Rotation{}, err
	}
	token := NewToken()
	t.SealedToken, err = s.vault.Seal(ctx, tokenRef(t.WorkspaceID, t.WorkflowID, t.ID), []byte(token))
	return Rotation{t, HashToken(token)}, err
}

// Rotate replaces the URL of a webhook trigger. The old one stops working.
func (s *Service) Rotate(ctx context.Context, actor auth.Actor, r Rotation) (Trigger, error) {
	t := r.trigger
	rotated, err := s.store.RotateToken(ctx, t, r.hash, actor.AuditEntry("trigger.rotated", "workflow", t.WorkflowID, map[string]any{"trigger_id": t.ID}))
	if err == nil && !rotated {
		err = notFound(t.WorkflowID, t.ID)
	}
	return t, err
}

// webhook returns a stored webhook trigger.
func (s *Service) webhook(ctx context.Context, actor auth.Actor, workflowID, id string) (Trigger, error) {
	defined, err := s.find(ctx, actor, workflowID, id)
	if err != nil {
		return Trigger{}, err
	}
	if !s.types.find(defined.Type).HasURL {
		return Trigger{}, fault.New(fault.InvalidRequest, "trigger %q of workflow %q is not a webhook but a trigger of type %s", id, workflowID, defined.Type)
	}
	stored, err := s.store.Triggers(ctx, actor.Workspace.ID, workflowID)
	if err != nil {
		return Trigger{}, err
	}
	for _, t := range stored {
		if t.ID == id && t.Type == defined.Type {
			return t, nil
		}
	}
	return Trigger{}, notFound(workflowID, id)
}

func notFound(workflowID, id string) error {
	return fault.New(fault.TriggerNotFound, "workflow %q has no trigger %q", workflowID, id)
}
