package secret

import (
	"context"
	"regexp"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
)

// Values manages the values of one kind. Callers write a V and read back a T:
// for secrets a T has no value.
type Values[T, V any] struct {
	kind     string // in messages and audit entries
	notFound fault.Code
	limit    func(auth.Limits) Limit
	table    Table[T]
	// encode checks a value and returns it as it is stored.
	encode func(ctx context.Context, workspaceID, name string, value V) ([]byte, error)
}

// Put creates a value or replaces it.
func (v *Values[T, V]) Put(ctx context.Context, actor auth.Actor, name string, value V) (stored T, created bool, err error) {
	if err := checkName(name); err != nil {
		return stored, false, err
	}
	encoded, err := v.encode(ctx, actor.Workspace.ID, name, value)
	if err != nil {
		return stored, false, err
	}
	limit := v.limit(actor.Limits())
	stored, outcome, err := v.table.Put(ctx, Write{
		WorkspaceID: actor.Workspace.ID, Name: name, Value: encoded, At: clock.Now(), By: actor.Name(), Limit: limit,
		Created: actor.AuditEntry(v.kind+".created", v.kind, name, nil), Updated: actor.AuditEntry(v.kind+".updated", v.kind, name, nil),
	})
	switch {
	case err != nil:
	case outcome == TooMany:
		err = fault.New(fault.PlanLimitExceeded, "the %s plan allows %d %ss; delete one first", actor.Workspace.Plan, limit.Count, v.kind)
	case outcome == TooLarge:
		err = fault.New(fault.PlanLimitExceeded, "the %s plan allows %d bytes for all %ss together; shorten or delete one first", actor.Workspace.Plan, limit.Bytes, v.kind)
	}
	return stored, err == nil && outcome == Created, err
}

// Get returns the value with the given name.
func (v *Values[T, V]) Get(ctx context.Context, actor auth.Actor, name string) (T, error) {
	if !namePattern.MatchString(name) {
		var none T
		return none, v.missing(name)
	}
	found, err := v.table.Get(ctx, actor.Workspace.ID, name)
	return fault.Found(found, err, v.missing, name)
}

// List lists the values of a workspace by name.
func (v *Values[T, V]) List(ctx context.Context, actor auth.Actor, page paging.Request) (paging.Page[T], error) {
	return v.table.List(ctx, actor.Workspace.ID, page)
}

// Delete deletes a value. Steps that refer to a deleted secret fail from then
// on; expressions that refer to a deleted variable evaluate it to nil.
func (v *Values[T, V]) Delete(ctx context.Context, actor auth.Actor, name string) error {
	if !namePattern.MatchString(name) {
		return v.missing(name)
	}
	deleted, err := v.table.Delete(ctx, actor.Workspace.ID, name, actor.AuditEntry(v.kind+".deleted", v.kind, name, nil))
	if err == nil && !deleted {
		err = v.missing(name)
	}
	return err
}

func (v *Values[T, V]) missing(name string) error {
	return fault.New(v.notFound, "there is no %s %q", v.kind, name)
}

var namePattern = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,62}$`)

// checkName rejects a name that cannot follow "secrets." or "vars." in an
// expression.
func checkName(name string) error {
	if !namePattern.MatchString(name) {
		return fault.New(fault.InvalidRequest,
			"the name must start with a letter or _ and have at most 63 characters a-z, A-Z, 0-9 and _")
	}
	return nil
}
