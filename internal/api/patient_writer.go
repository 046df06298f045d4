package api

import (
	"net/http"

	"github.com/stepmill/stepmill/internal/clock"
)

// patientWriter extends the write timeout with each write.
type patientWriter struct {
	http.ResponseWriter
	conn *http.ResponseController
}

func newPatientWriter(w http.ResponseWriter) patientWriter {
	return patientWriter{w, http.NewResponseController(w)}
}

// Write implements io.Writer.
func (p patientWriter) Write(data []byte) (int, error) {
	_ = p.conn.SetWriteDeadline(clock.Monotonic().Add(responseTime)) // without deadlines, the timeout of the server applies
	return p.ResponseWriter.Write(data)
}
