package run

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
)

// Paths of links, relative to the public URL of the service.
const (
	PagePath     = "/approve/"
	CallbackPath = "/callback/"
)

// LinkKind is the kind of a link: for people or for machines. A link of one kind
// is not accepted for the other.
type LinkKind byte

// The kinds of links.
const (
	PageLink     LinkKind = 'p'
	CallbackLink LinkKind = 'c'
)

// Signer signs a text with the key of a workspace.
type Signer interface {
	Sign(ctx context.Context, workspaceID, purpose string, text []byte) ([]byte, error)
}

// LinkStore stores the steps that links are for.
type LinkStore interface {
	// RunOwner returns the workspace of a run, or "" if the run does not exist.
	RunOwner(ctx context.Context, runID string) (string, error)
	LinkedStep(ctx context.Context, workspaceID, runID, stepID string) (*LinkedStep, error)
	AnswerStep(ctx context.Context, a Answer) (answered bool, err error)
}

// LinkedStep is a step that waits for an answer, with the facts that are shown to the
// person who decides.
type LinkedStep struct {
	Workspace    auth.Workspace
	WorkflowName string
	RunStatus    Status
	Step         *Step // nil if it has not started
}

// Links lets people and machines answer a step with nothing but a link. A link
// contains the path of its step and a signature, so it need not be stored and can
// be sent before the step starts. It is valid for one answer, while the step is
// open.
type Links struct {
	store  LinkStore
	signer Signer
	base   func() string
}

// NewLinks returns a Links. The base function returns the public URL of the
// service, or "" if it is unknown.
func NewLinks(store LinkStore, signer Signer, base func() string) *Links {
	return &Links{store: store, signer: signer, base: base}
}

// Link returns the links of a step.
func (l *Links) Link(ctx context.Context, workspaceID, runID, stepID string) (expr.Link, error) {
	page, err := l.token(ctx, PageLink, workspaceID, runID, stepID)
	if err != nil {
		return expr.Link{}, err
	}
	callback, err := l.token(ctx, CallbackLink, workspaceID, runID, stepID)
	if err != nil {
		return expr.Link{}, err
	}
	base := l.base()
	if base == "" {
		return expr.Link{}, errNoBase
	}
	return expr.Link{Page: base + PagePath + page, Callback: base + CallbackPath + callback}, nil
}

var errNoBase = errors.New("cannot create links: the public URL is unknown, because no node serves requests and --public-url is not set")

const (
	// proofBytes is the length of the truncated signature: 192 bits.
	proofBytes = 24
	// A token consists of the kind, the id of the run, the signature and the path of
	// the step.
	idChars    = 26
	proofChars = 32
	headChars  = 1 + idChars + proofChars
	maxToken   = 1000
)

func (l *Links) token(ctx context.Context, kind LinkKind, workspaceID, runID, stepID string) (string, error) {
	proof, err := l.signer.Sign(ctx, workspaceID, "links", []byte(string(kind)+runID+"/"+stepID))
	if err != nil {
		return "", err
	}
	encoding := base64.RawURLEncoding
	return string(kind) + runID[len(uid.Run)+1:] + encoding.EncodeToString(proof[:proofBytes]) + encoding.EncodeToString([]byte(stepID)), nil
}

// linkTarget is the step that a token is for.
type linkTarget struct {
	kind                       LinkKind
	workspaceID, runID, stepID string
}

// read parses and verifies a token. It fails if the run no longer exists.
func (l *Links) read(ctx context.Context, kind LinkKind, token string) (linkTarget, error) {
	if len(token) <= headChars || len(token) > maxToken || token[0] != byte(kind) {
		return linkTarget{}, invalidLink()
	}
	path, err := base64.RawURLEncoding.Strict().DecodeString(token[headChars:])
	in := linkTarget{kind: kind, runID: string(uid.Run) + "_" + token[1:1+idChars], stepID: string(path)}
	if err != nil || !uid.Valid(uid.Run, in.runID) {
		return linkTarget{}, invalidLink()
	}
	if in.workspaceID, err = l.store.RunOwner(ctx, in.runID); err != nil {
		return linkTarget{}, err
	}
	if in.workspaceID == "" {
		return linkTarget{}, invalidLink()
	}
	want, err := l.token(ctx, kind, in.workspaceID, in.runID, in.stepID)
	if err == nil && !hmac.Equal([]byte(want), []byte(token)) {
		err = invalidLink()
	}
	return in, err
}

func invalidLink() error {
	return fault.New(fault.NotFound, "the link is incomplete, or its run no longer exists")
}

// Show returns the step that a link is for.
func (l *Links) Show(ctx context.Context, kind LinkKind, token string) (LinkedStep, error) {
	_, asked, err := l.find(ctx, kind, token)
	return asked, err
}

func (l *Links) find(ctx context.Context, kind LinkKind, token string) (linkTarget, LinkedStep, error) {
	in, err := l.read(ctx, kind, token)
	if err != nil {
		return linkTarget{}, LinkedStep{}, err
	}
	asked, err := l.store.LinkedStep(ctx, in.workspaceID, in.runID, in.stepID)
	if err == nil && asked == nil {
		err = invalidLink()
	}
	if err != nil {
		return linkTarget{}, LinkedStep{}, err
	}
	return in, *asked, nil
}

// Visit identifies a request that follows a link.
type Visit struct{ Address, RequestID string }

// Decide answers a step by its link. The first answer counts. If answered is
// false, Show tells why. A machine may answer before the step begins to wait.
func (l *Links) Decide(ctx context.Context, kind LinkKind, token string, in Resumption, by Visit) (answered bool, err error) {
	target, asked, err := l.find(ctx, kind, token)
	if err != nil {
		return false, err
	}
	actor := auth.Actor{Workspace: asked.Workspace, Type: audit.ActorLink, RequestID: by.RequestID}
	if kind == CallbackLink {
		actor.ID = "callback"
	}
	value, err := in.value(actor)
	if err != nil {
		return false, err
	}
	return l.store.AnswerStep(ctx, Answer{
		WorkspaceID: target.workspaceID, RunID: target.runID, StepID: target.stepID, Value: value, At: clock.Now(), Early: kind == CallbackLink,
		Entry: actor.AuditEntry("run.answered", "run", target.runID, map[string]any{"step_id": target.stepID, "approved": in.Approved, "address": by.Address}),
	})
}

// AnswerState is whether a step can be answered and, if not, why.
type AnswerState string

// The states of a step.
const (
	NotYetOpen AnswerState = "not_yet"   // it does not wait for an answer yet
	Open       AnswerState = "open"      // it waits for an answer
	Decided    AnswerState = "decided"   // it was answered
	RanOut     AnswerState = "timed_out" // it timed out
	Closed     AnswerState = "closed"    // it ended without an answer
)

// AnswerStatus says whether a step can be answered, and its decision.
type AnswerStatus struct {
	State    AnswerState
	Approved bool
	At       *time.Time
}

// AnswerStatus returns whether the step can be answered, and its decision.
func (a LinkedStep) AnswerStatus() AnswerStatus {
	step := a.Step
	switch {
	case step == nil && a.RunStatus == Running:
		return AnswerStatus{State: NotYetOpen}
	case step == nil:
		return AnswerStatus{State: Closed}
	case step.Status == StepSucceeded:
		return answerStatus(step.Output, step.FinishedAt)
	case step.Status == StepFailed:
		return AnswerStatus{State: RanOut, At: step.FinishedAt}
	case step.Status.Settled() || a.RunStatus != Running:
		return AnswerStatus{State: Closed, At: step.FinishedAt}
	case step.Answer != nil:
		return answerStatus(step.Answer, nil)
	case step.Status == StepWaiting && step.Awaits == action.AwaitsAnswer:
		return AnswerStatus{State: Open}
	}
	return AnswerStatus{State: NotYetOpen}
}

func answerStatus(answer json.RawMessage, at *time.Time) AnswerStatus {
	var given struct {
		Approved bool    `json:"approved"`
		By       *string `json:"by"`
	}
	if err := json.Unmarshal(answer, &given); err != nil {
		return AnswerStatus{State: Closed, At: at}
	}
	if given.By == nil {
		return AnswerStatus{State: RanOut, Approved: given.Approved, At: at}
	}
	return AnswerStatus{State: Decided, Approved: given.Approved, At: at}
}

// Message returns the question that the step asks.
func (a LinkedStep) Message() string {
	var input struct {
		Message string `json:"message"`
	}
	if a.Step != nil {
		// An unreadable input has no message to show.
		_ = json.Unmarshal(a.Step.Input, &input)
	}
	return input.Message
}
