package trigger

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/internal/workflow"
)

// A token is random characters with a check at their end, so that what is no
// token is turned away without a look into the store.
const (
	tokenBytes = 24 // 192 bits
	bodyChars  = 32
	checkChars = 4
)

// newToken makes the secret part of an address.
func newToken() string {
	var random [tokenBytes]byte
	_, _ = rand.Read(random[:])
	body := base64.RawURLEncoding.EncodeToString(random[:])
	return body + checkOf(body)
}

func checkOf(body string) string {
	sum := sha256.Sum256([]byte("hook " + body))
	return base64.RawURLEncoding.EncodeToString(sum[:3])[:checkChars]
}

func validToken(token string) bool {
	return len(token) == bodyChars+checkChars && checkOf(token[:bodyChars]) == token[bodyChars:]
}

// HashToken is what a token is found by.
func HashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

func tokenRef(workspaceID, workflowID, id string) vault.Ref {
	return vault.Ref{Workspace: workspaceID, Table: "triggers", ID: workflowID + "/" + id}
}

// Address is where a webhook is called.
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

// Rotate gives a webhook another address. Calls of the one before lead nowhere
// from then on.
func (s *Service) Rotate(ctx context.Context, actor auth.Actor, workflowID, id string) (Trigger, error) {
	t, err := s.webhook(ctx, actor, workflowID, id)
	if err != nil {
		return Trigger{}, err
	}
	token := newToken()
	if t.SealedToken, err = s.vault.Seal(ctx, tokenRef(t.WorkspaceID, t.WorkflowID, t.ID), []byte(token)); err != nil {
		return Trigger{}, err
	}
	rotated, err := s.store.RotateToken(ctx, t, HashToken(token), actor.Did("trigger.rotated", "workflow", workflowID, map[string]any{"trigger_id": id}))
	if err == nil && !rotated {
		err = notFound(workflowID, id)
	}
	return t, err
}

// webhook finds a trigger that has an address.
func (s *Service) webhook(ctx context.Context, actor auth.Actor, workflowID, id string) (Trigger, error) {
	defined, err := s.find(ctx, actor, workflowID, id)
	if err != nil {
		return Trigger{}, err
	}
	if defined.Type != workflow.WebhookTrigger {
		return Trigger{}, fault.New(fault.InvalidRequest, "trigger %q of workflow %q is no webhook: it is a %s", id, workflowID, defined.Type)
	}
	kept, err := s.store.Triggers(ctx, actor.Workspace.ID, workflowID)
	if err != nil {
		return Trigger{}, err
	}
	for _, t := range kept {
		if t.ID == id && t.Type == workflow.WebhookTrigger {
			return t, nil
		}
	}
	return Trigger{}, notFound(workflowID, id)
}

func notFound(workflowID, id string) error {
	return fault.New(fault.TriggerNotFound, "workflow %q has no trigger %q", workflowID, id)
}
