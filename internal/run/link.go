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

// Where links lead, below the public URL of the service.
const (
	PagePath     = "/approve/"
	CallbackPath = "/callback/"
)

// LinkKind is who a link is for. One that is for a person does not let a machine
// in, nor the other way round.
type LinkKind byte

// The kinds of links.
const (
	PageLink     LinkKind = 'p'
	CallbackLink LinkKind = 'c'
)

// Signer proves that a text comes from a workspace.
type Signer interface {
	Sign(ctx context.Context, workspaceID, purpose string, text []byte) ([]byte, error)
}

// LinkStore keeps the steps that links are for.
type LinkStore interface {
	// RunOwner is the workspace of a run, empty when there is no such run.
	RunOwner(ctx context.Context, runID string) (string, error)
	Asked(ctx context.Context, workspaceID, runID, stepID string) (*Asked, error)
	AnswerStep(ctx context.Context, a Answer) (answered bool, err error)
}

// Asked is a step with what somebody has to know who is asked to decide.
type Asked struct {
	Workspace    auth.Workspace
	WorkflowName string
	RunStatus    Status
	Step         *Step // nil: it has not begun
}

// Links answers steps for those who have nothing but a link. A link names its
// step and proves itself: there is nothing to store, and it can be sent before
// the step begins. It is good for one answer, while the step is open.
type Links struct {
	store  LinkStore
	signer Signer
	base   func() string
}

// NewLinks makes links that begin with the public URL of the service, as long as
// that is known.
func NewLinks(store LinkStore, signer Signer, base func() string) *Links {
	return &Links{store: store, signer: signer, base: base}
}

// Link makes the links of a step.
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

var errNoBase = errors.New("it is not known where links lead to: no node serves requests, and --public-url was not given")

const (
	// proofBytes are kept of a signature: 192 bits.
	proofBytes = 24
	// A token is the kind, the id of the run, the proof and the path of the step.
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

// linked is what a token is for.
type linked struct {
	kind                       LinkKind
	workspaceID, runID, stepID string
}

// read takes a token apart, if it is genuine and there is still its run.
func (l *Links) read(ctx context.Context, kind LinkKind, token string) (linked, error) {
	if len(token) <= headChars || len(token) > maxToken || token[0] != byte(kind) {
		return linked{}, badLink()
	}
	path, err := base64.RawURLEncoding.Strict().DecodeString(token[headChars:])
	in := linked{kind: kind, runID: string(uid.Run) + "_" + token[1:1+idChars], stepID: string(path)}
	if err != nil || !uid.Valid(uid.Run, in.runID) {
		return linked{}, badLink()
	}
	if in.workspaceID, err = l.store.RunOwner(ctx, in.runID); err != nil {
		return linked{}, err
	}
	if in.workspaceID == "" {
		return linked{}, badLink()
	}
	want, err := l.token(ctx, kind, in.workspaceID, in.runID, in.stepID)
	if err == nil && !hmac.Equal([]byte(want), []byte(token)) {
		err = badLink()
	}
	return in, err
}

func badLink() error {
	return fault.New(fault.NotFound, "there is nothing here: the link is not complete, or what it was for is gone")
}

// Show tells what a link asks for.
func (l *Links) Show(ctx context.Context, kind LinkKind, token string) (Asked, error) {
	_, asked, err := l.find(ctx, kind, token)
	return asked, err
}

func (l *Links) find(ctx context.Context, kind LinkKind, token string) (linked, Asked, error) {
	in, err := l.read(ctx, kind, token)
	if err != nil {
		return linked{}, Asked{}, err
	}
	asked, err := l.store.Asked(ctx, in.workspaceID, in.runID, in.stepID)
	if err == nil && asked == nil {
		err = badLink()
	}
	if err != nil {
		return linked{}, Asked{}, err
	}
	return in, *asked, nil
}

// Visit is who follows a link, as far as that is known.
type Visit struct{ Address, RequestID string }

// Decide answers a step by its link. The first answer counts; what stands in its
// way is told by Show. A machine may answer before the step begins to wait.
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
		Entry: actor.Did("run.answered", "run", target.runID, map[string]any{"step_id": target.stepID, "approved": in.Approved, "address": by.Address}),
	})
}

// Standing is whether a step can still be answered, and if not why.
type Standing string

// How it can stand.
const (
	NotYetOpen Standing = "not_yet"   // it has not begun
	Open       Standing = "open"      // it waits for an answer
	Decided    Standing = "decided"   // it has one
	RanOut     Standing = "timed_out" // nobody answered in time
	Closed     Standing = "closed"    // it ended in another way
)

// Verdict is how a step stands, and what was decided.
type Verdict struct {
	Standing Standing
	Approved bool
	At       *time.Time
}

// Verdict tells how the step stands.
func (a Asked) Verdict() Verdict {
	step := a.Step
	switch {
	case step == nil && a.RunStatus == Running:
		return Verdict{Standing: NotYetOpen}
	case step == nil:
		return Verdict{Standing: Closed}
	case step.Status == StepSucceeded:
		return verdict(step.Output, step.FinishedAt)
	case step.Status == StepFailed:
		return Verdict{Standing: RanOut, At: step.FinishedAt}
	case step.Status.Settled() || a.RunStatus != Running:
		return Verdict{Standing: Closed, At: step.FinishedAt}
	case step.Answer != nil:
		return verdict(step.Answer, nil)
	case step.Status == StepWaiting && step.Awaits == action.AwaitsAnswer:
		return Verdict{Standing: Open}
	}
	return Verdict{Standing: NotYetOpen}
}

func verdict(answer json.RawMessage, at *time.Time) Verdict {
	var given struct {
		Approved bool    `json:"approved"`
		By       *string `json:"by"`
	}
	if err := json.Unmarshal(answer, &given); err != nil {
		return Verdict{Standing: Closed, At: at}
	}
	if given.By == nil {
		return Verdict{Standing: RanOut, Approved: given.Approved, At: at}
	}
	return Verdict{Standing: Decided, Approved: given.Approved, At: at}
}

// Message is what the step asks.
func (a Asked) Message() string {
	var input struct {
		Message string `json:"message"`
	}
	if a.Step != nil {
		// An input that cannot be read has no message to show.
		_ = json.Unmarshal(a.Step.Input, &input)
	}
	return input.Message
}
