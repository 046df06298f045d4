package transport

// The paths of the health checks.
const (
	HealthPath = "/healthz"
	ReadyPath  = "/readyz"
)
