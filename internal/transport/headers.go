package transport

import (
	"net/http"
	"strings"
)

func (s *Server) setCommonHeaders(h http.Header, c *Caller) {
	h.Set("X-Request-Id", c.RequestID)
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	// TLS ends at a proxy. Without includeSubDomains: other hosts are not ours.
	if strings.HasPrefix(s.Origin, "https://") {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}
