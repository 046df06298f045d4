package account

import (
	"slices"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
)

// Role determines what a member of a workspace may do.
type Role string

// The roles.
const (
	Owner    Role = "owner"
	Editor   Role = "editor"
	Operator Role = "operator"
	Viewer   Role = "viewer"
)

// Roles lists the roles, the most powerful first.
func Roles() []Role { return []Role{Owner, Editor, Operator, Viewer} }

// Scopes returns the scopes of the role. It lists each one: only admin implies
// others.
func (r Role) Scopes() []auth.Scope {
	switch r {
	case Owner:
		return auth.Scopes()
	case Editor:
		return []auth.Scope{auth.Read, auth.Write, auth.Execute}
	case Operator:
		return []auth.Scope{auth.Read, auth.Execute}
	case Viewer:
		return []auth.Scope{auth.Read}
	default:
		return nil
	}
}

// ParseRole returns the role with the given name.
func ParseRole(pointer, name string) (Role, error) {
	if role := Role(name); slices.Contains(Roles(), role) {
		return role, nil
	}
	return "", fault.Field(pointer, "must be one of owner, editor, operator, viewer")
}
