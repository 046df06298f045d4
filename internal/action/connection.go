package action

import (
	"strings"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/mask"
)

// Connection is the connection of a step, ready to use.
type Connection struct {
	Name string
	// Integration is the id of the integration of the connection, "" for a custom one.
	// Variables are what its templates can read of the connection, without secrets.
	Integration string
	Variables   map[string]string
	// Credential authenticates requests to the hosts of the connection.
	Credential egress.Credential
	// Mask masks the values in it that must not be stored.
	Mask *mask.Masker
	// Accepted reports that the service is known to accept the credential: a 401 is
	// then about the request.
	Accepted bool
}

// awaitsConnection is the beginning of what a step awaits that needs a connection.
const awaitsConnection = "connection/"

// AwaitsConnection returns what a step awaits that needs a broken connection.
func AwaitsConnection(name string) Awaits { return awaitsConnection + Awaits(name) }

// Connection returns the name of the connection that a step awaits, if it awaits one.
func (a Awaits) Connection() (name string, ok bool) {
	return strings.CutPrefix(string(a), awaitsConnection)
}
