package connection

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/vault"
)

// repository reads connections with their secrets and seals them. The parts of the package
// share it.
type repository struct {
	store        Stores
	vault        Vault
	integrations *integrations
}

// in returns the repository as part of a transaction.
func (r *repository) in(tx txn.Tx) *repository {
	bound := *r
	bound.store = r.store.In(tx)
	return &bound
}

// read reads a connection by a name that it has or had before, and opens its credential. It
// returns a BrokenError if the connection has to be reconnected.
func (r *repository) read(ctx context.Context, workspaceID, name string) (*opened, error) {
	c, err := r.readAny(ctx, workspaceID, name)
	if err == nil {
		err = c.broken(name)
	}
	if err == nil {
		err = r.refuseUnconfirmed(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// readAny is like read, whatever the status of the connection.
func (r *repository) readAny(ctx context.Context, workspaceID, name string) (*opened, error) {
	sealed, err := r.store.SealedConnection(ctx, workspaceID, name)
	switch {
	case err != nil:
		return nil, storeFailed(ctx, name, err)
	case sealed == nil:
		return nil, &action.Failure{Code: CodeMissing, Message: fmt.Sprintf("there is no connection %q", name)}
	}
	return r.unseal(ctx, *sealed)
}

// reopen reads a connection that is known without its secrets again, whatever its status. It
// returns an error if it was deleted and another one has its name.
func (r *repository) reopen(ctx context.Context, c Connection) (*opened, error) {
	sealed, err := r.store.SealedConnection(ctx, c.WorkspaceID, c.Name)
	if err != nil {
		return nil, err
	}
	if sealed == nil || sealed.ID != c.ID {
		return nil, notFound(c.ID)
	}
	return r.unseal(ctx, *sealed)
}

func (r *repository) unseal(ctx context.Context, sealed Sealed) (*opened, error) {
	c, err := r.openSecrets(ctx, sealed)
	if err != nil {
		return nil, err
	}
	c.service, c.auth, err = r.integrations.describe(ctx, c.Connection)
	return c, err
}

// openSecrets opens the credential of a connection without looking for its integration, which
// may have been deleted.
func (r *repository) openSecrets(ctx context.Context, sealed Sealed) (*opened, error) {
	c := &opened{Connection: sealed.Connection}
	plain, err := r.vault.Open(ctx, sealedAt(c.Connection), sealed.Credential)
	if err != nil {
		return nil, storeFailed(ctx, c.Name, fmt.Errorf("open the connection %s: %w", c.ID, err))
	}
	if err := json.Unmarshal(plain, &c.secrets); err != nil {
		return nil, fmt.Errorf("read the connection %s: %w", c.ID, err)
	}
	return c, nil
}

func (r *repository) seal(ctx context.Context, c *opened) (Sealed, error) {
	plain, err := json.Marshal(c.secrets) //nolint:gosec // it is sealed
	if err != nil {
		return Sealed{}, err
	}
	sealed, err := r.vault.Seal(ctx, sealedAt(c.Connection), plain)
	return Sealed{Connection: c.Connection, Credential: sealed}, err
}

// sealedAt returns the location that a credential is sealed for. Copied to another row, it
// cannot be opened.
func sealedAt(c Connection) vault.Ref {
	return vault.Ref{Workspace: c.WorkspaceID, Table: "connections", ID: c.ID}
}

// markBroken records that a connection has to be reconnected, and returns a BrokenError.
func (r *repository) markBroken(ctx context.Context, c *opened, problem string) error {
	e, err := brokenEvent(c.Connection, problem, clock.Now())
	if err != nil {
		return err
	}
	if _, err := r.store.SetConnectionStatus(ctx, c.WorkspaceID, c.ID, c.Epoch, NeedsReconnect, problem, e); err != nil {
		return storeFailed(ctx, c.Name, err)
	}
	return &BrokenError{Name: c.Name, Problem: problem}
}

// refuseUnconfirmed returns a BrokenError for a connection whose integration was changed,
// and records why it cannot be used.
func (r *repository) refuseUnconfirmed(ctx context.Context, c *opened) error {
	if c.isConfirmed() {
		return nil
	}
	if c.Status == NeedsReconnect {
		return &BrokenError{Name: c.Name, Problem: c.Problem}
	}
	return r.markBroken(ctx, c, changedProblem)
}

// wakeSteps wakes the steps that wait for a connection, in batches. If it fails, they retry on
// their own, only later.
func (r *repository) wakeSteps(ctx context.Context, c Connection) error {
	ctx = context.WithoutCancel(ctx)
	for more := true; more; {
		var err error
		if more, err = r.store.WakeSteps(ctx, c.WorkspaceID, c.Name, clock.Steady()); err != nil {
			return err
		}
	}
	return nil
}
