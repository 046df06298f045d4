package api

import (
	"errors"
	"io"
	"net/http"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/inbound"
	"github.com/stepmill/stepmill/internal/run"
)

type answeredBody struct {
	Answered bool `json:"answered"`
}

// enterCallback lets a machine answer a step with data.
func (s *Server) enterCallback(w http.ResponseWriter, r *http.Request, c *caller, token string) {
	if err := s.callBack(w, r, c, token); err != nil {
		s.fail(w, c, s.turnAway(w, r, err))
		return
	}
	writeJSON(w, http.StatusOK, answeredBody{true})
}

func (s *Server) callBack(w http.ResponseWriter, r *http.Request, c *caller, token string) error {
	asked, err := s.Links.Show(r.Context(), run.CallbackLink, token)
	if err != nil {
		return err
	}
	in := run.Resumption{Approved: true}
	switch approved := r.URL.Query()["approved"]; {
	case len(approved) == 0 || len(approved) == 1 && approved[0] == "true":
	case len(approved) == 1 && approved[0] == "false":
		in.Approved = false
	default:
		return parameter("approved", "must be true or false, once")
	}
	limits := asked.Workspace.Plan.Limits()
	release, err := s.bodies.take(r, limits.RequestBodyBytes)
	if err != nil {
		return err
	}
	defer release()
	body, err := readBody(w, r, limits)
	if err != nil {
		return err
	}
	if in.Data, err = inbound.Payload(r.Header, body); err != nil {
		return err
	}
	return s.decide(r, c, run.CallbackLink, token, in)
}

// decide answers a step by a link, or says why it cannot be answered.
func (s *Server) decide(r *http.Request, c *caller, kind run.LinkKind, token string, in run.Resumption) error {
	answered, err := s.Links.Decide(r.Context(), kind, token, in, run.Visit{Address: s.clientAddress(r).String(), RequestID: c.requestID})
	if err != nil || answered {
		return err
	}
	asked, err := s.Links.Show(r.Context(), kind, token)
	if err != nil {
		return err
	}
	return fault.New(fault.StepNotWaiting, "%s", standing(asked.Verdict()))
}

// standing says why a step cannot be answered.
func standing(v run.Verdict) string {
	switch v.Standing {
	case run.Decided:
		return "this has been decided already"
	case run.RanOut:
		return "the time to decide has run out"
	case run.Closed:
		return "the run has ended, there is nothing to decide any more"
	}
	return "this does not wait for a decision"
}

// readBody reads the body of a stranger within the limit of a plan.
func readBody(w http.ResponseWriter, r *http.Request, limits auth.Limits) ([]byte, error) {
	tooLarge := fault.New(fault.PayloadTooLarge, "the body is larger than the %d bytes that are allowed", limits.RequestBodyBytes)
	if r.ContentLength > limits.RequestBodyBytes {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limits.RequestBodyBytes))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, tooLarge
	}
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "the body could not be read to its end").Because(err)
	}
	return body, nil
}
