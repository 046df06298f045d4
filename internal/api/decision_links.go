package api

import (
	"net/http"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/trigger"
)

// decisionLinks serves the links of steps that wait for a decision: the page for people,
// and the URL that programs call.
type decisionLinks struct {
	links *run.Links
	page  decisionPage
}

type answeredBody struct {
	Answered bool `json:"answered"`
}

// serveCallback lets a program resume a waiting step with data.
func (h *decisionLinks) serveCallback(call *transport.Call, token string) {
	if err := h.handleCallback(call, token); err != nil {
		call.Fail(call.Reject(err))
		return
	}
	call.JSON(http.StatusOK, answeredBody{true})
}

func (h *decisionLinks) handleCallback(call *transport.Call, token string) error {
	r := call.R
	link, err := h.links.Show(r.Context(), run.CallbackLink, token)
	if err != nil {
		return err
	}
	in := run.Resumption{Approved: true}
	switch approved := r.URL.Query()["approved"]; {
	case len(approved) == 0 || len(approved) == 1 && approved[0] == "true":
	case len(approved) == 1 && approved[0] == "false":
		in.Approved = false
	default:
		return transport.Parameter("approved", "must be true or false, and given only once")
	}
	reserved, err := call.ReserveBody(transport.WorkspaceBodies(link.Workspace.ID), transport.NetworkBodies(call.Network()))
	if err != nil {
		return err
	}
	defer reserved.Release()
	body, err := call.ReadBodyWithin(link.Workspace.Plan.Limits(), reserved)
	if err != nil {
		return err
	}
	if in.Data, err = trigger.ParseBody(r.Header, body); err != nil {
		return err
	}
	return h.submit(call, run.CallbackLink, token, in)
}

// submit resumes a step through a link, or returns why it cannot be resumed.
func (h *decisionLinks) submit(call *transport.Call, kind run.LinkKind, token string, in run.Resumption) error {
	ctx := call.R.Context()
	accepted, err := h.links.Decide(ctx, kind, token, in, run.Visit{Address: call.Address().String(), RequestID: call.RequestID()})
	if err != nil || accepted {
		return err
	}
	link, err := h.links.Show(ctx, kind, token)
	if err != nil {
		return err
	}
	return fault.New(fault.StepNotWaiting, "%s", notWaitingReason(link.AnswerStatus()))
}

// notWaitingReason returns why a step cannot be resumed.
func notWaitingReason(v run.AnswerStatus) string {
	switch v.State {
	case run.Decided:
		return "this has already been decided"
	case run.RanOut:
		return "the deadline for this decision has passed"
	case run.Closed:
		return "the run has ended, so no decision is needed"
	}
	return "the step is not waiting for a decision"
}
