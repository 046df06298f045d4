package api

import (
	"net/http"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
)

type answeredBody struct {
	Answered bool `json:"answered"`
}

// serveCallback lets a program resume a waiting step with data.
func (s *Server) serveCallback(w http.ResponseWriter, r *http.Request, c *caller, token string) {
	if err := s.handleCallback(r, c, token); err != nil {
		s.fail(w, c, s.reject(w, r, err))
		return
	}
	writeJSON(w, http.StatusOK, answeredBody{true})
}

func (s *Server) handleCallback(r *http.Request, c *caller, token string) error {
	link, err := s.Links.Show(r.Context(), run.CallbackLink, token)
	if err != nil {
		return err
	}
	in := run.Resumption{Approved: true}
	switch approved := r.URL.Query()["approved"]; {
	case len(approved) == 0 || len(approved) == 1 && approved[0] == "true":
	case len(approved) == 1 && approved[0] == "false":
		in.Approved = false
	default:
		return parameter("approved", "must be true or false, and given only once")
	}
	reserved, err := s.reserveBody(workspaceBodies(link.Workspace.ID), networkBodies(c.network))
	if err != nil {
		return err
	}
	defer reserved.release()
	body, err := readPublicBody(r, link.Workspace.Plan.Limits(), reserved)
	if err != nil {
		return err
	}
	if in.Data, err = trigger.ParseBody(r.Header, body); err != nil {
		return err
	}
	return s.submitDecision(r, c, run.CallbackLink, token, in)
}

// submitDecision resumes a step through a link, or returns why it cannot be resumed.
func (s *Server) submitDecision(r *http.Request, c *caller, kind run.LinkKind, token string, in run.Resumption) error {
	accepted, err := s.Links.Decide(r.Context(), kind, token, in, run.Visit{Address: s.clientAddress(r).String(), RequestID: c.requestID})
	if err != nil || accepted {
		return err
	}
	link, err := s.Links.Show(r.Context(), kind, token)
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

// readPublicBody reads the body of an unauthenticated request within the limit of the plan.
func readPublicBody(r *http.Request, limits auth.Limits, reserved *reservation) ([]byte, error) {
	limit := limits.RequestBodyBytes
	return readBody(r, limit, reserved, fault.New(fault.PayloadTooLarge, "the body is larger than the %d bytes that the plan allows", limit))
}
