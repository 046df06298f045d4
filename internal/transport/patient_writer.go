package transport

import (
	"net/http"

	"github.com/stepmill/stepmill/internal/clock"
)

// PatientWriter extends the write timeout with each write.
type PatientWriter struct {
	http.ResponseWriter
	conn *http.ResponseController
}

// NewPatientWriter returns a writer for a response of any length.
func NewPatientWriter(w http.ResponseWriter) PatientWriter {
	return PatientWriter{w, http.NewResponseController(w)}
}

// Write implements io.Writer.
func (p PatientWriter) Write(data []byte) (int, error) {
	_ = p.conn.SetWriteDeadline(clock.Monotonic().Add(responseTime)) // without deadlines, the timeout of the server applies
	return p.ResponseWriter.Write(data)
}
