package transport

import (
	"net/http"
)

// download writes a body of unknown length. If it fails in the middle, the connection
// is closed, so that the client does not take a part for the whole.
func (s *Server) download(w http.ResponseWriter, r *http.Request, e *Endpoint, response *Reply) {
	for name, value := range response.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(response.statusOr(e.Status))
	if r.Method == http.MethodHead {
		return
	}
	if err := response.Download(NewPatientWriter(w)); err != nil {
		if r.Context().Err() == nil {
			s.Log.Warn("a download ended early", "request_id", CallerOf(r.Context()).RequestID, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
}
