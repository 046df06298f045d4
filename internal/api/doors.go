package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
)

// door is an entrance beside the API, for those who have no key: what lets them
// in is the last part of the path.
type door struct {
	prefix string
	// methods are those that it takes; nil leaves that to enter.
	methods []string
	status  int
	enter   func(w http.ResponseWriter, r *http.Request, c *caller, token string)
	fail    func(w http.ResponseWriter, c *caller, err error)
}

func (s *Server) openDoors() []door {
	return []door{
		{run.PagePath, []string{http.MethodGet, http.MethodPost}, http.StatusOK, s.enterPage, s.failPage},
		{run.CallbackPath, []string{http.MethodPost}, http.StatusOK, s.enterCallback, s.fail},
		{trigger.HookPath, nil, http.StatusAccepted, s.enterHook, s.fail},
	}
}

// Doors lists the entrances beside the API, as the contract has them.
func (s *Server) Doors() []Route {
	var out []Route
	for _, d := range s.doors {
		for _, method := range documentedMethods(d) {
			out = append(out, Route{Method: method, Path: d.prefix + "{token}", Scope: auth.Public, Status: d.status})
		}
	}
	return out
}

// documentedMethods are those that the contract shows. A hook is usually called
// with POST; its trigger may say otherwise.
func documentedMethods(d door) []string {
	if d.methods == nil {
		return []string{http.MethodPost}
	}
	return d.methods
}

// doorOf is the door that a path leads to, with what comes after it.
func (s *Server) doorOf(path string) (*door, string) {
	for i := range s.doors {
		if token, found := strings.CutPrefix(path, s.doors[i].prefix); found {
			return &s.doors[i], token
		}
	}
	return nil, ""
}

// visit serves a request that comes to a door.
func (s *Server) visit(w http.ResponseWriter, r *http.Request, c *caller, d *door, token string) {
	w.Header().Set("X-Robots-Tag", "noindex")
	setLimitHeaders(w.Header(), s.preauth.Peek(network(s.clientAddress(r)), s.PreauthPerMinute, clock.Now()))
	if d.methods != nil && !slices.Contains(d.methods, r.Method) && (r.Method != http.MethodHead || d.methods[0] != http.MethodGet) {
		allowed := strings.Join(d.methods, ", ")
		w.Header().Set("Allow", allowed)
		d.fail(w, c, fault.New(fault.MethodNotAllowed, "%s is not allowed here; the path has %s", clean(r.Method), allowed))
		return
	}
	d.enter(w, r, c, token)
}

// turnAway is the answer to a token that leads nowhere, and to a call that is not
// genuine. Guessing is counted like guessing keys.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, err error) error {
	if !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Unauthorized) {
		return err
	}
	state, ok, _ := s.preauth.Take(r.Context(), network(s.clientAddress(r)), s.PreauthPerMinute, clock.Now())
	setLimitHeaders(w.Header(), state)
	if !ok {
		return limited("this address has come with %d wrong addresses, keys or signatures in this minute", state)
	}
	return err
}

// loggedPath is a path without what lets somebody in.
func (s *Server) loggedPath(path string) string {
	if d, _ := s.doorOf(path); d != nil {
		return d.prefix + "***"
	}
	return clean(path)
}
