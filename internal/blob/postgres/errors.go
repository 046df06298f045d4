package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/fault"
)

// explain turns the error of a statement into one of package blob or a fault. It
// distinguishes what a retry may fix from what only the operator can.
func explain(operation string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err // canceled by the caller; our own timeouts are deadlines
	}
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return unavailable(err) // there was no response
	}
	switch pgErr.Code {
	case "53100":
		return fault.New(fault.StorageFull, "the database's disk is full; the file was not stored").Because(err)
	case "25006":
		return fault.New(fault.StorageReadOnly, "the database is read-only; nothing was changed").Because(err).After(10 * time.Second)
	case "42501", "42P01", // no privilege, no such table
		"28000", "28P01", "3D000": // no such user, wrong password, no such database
		return fmt.Errorf("%s: %w: %w", operation, blob.ErrDenied, err)
	}
	switch pgErr.Code[:min(2, len(pgErr.Code))] {
	case "08", "40", "53", "55", "57", "58": // connection, conflict, resources, locks, shutdown, system
		return unavailable(err)
	}
	return fmt.Errorf("%s: %w", operation, err)
}

func unavailable(err error) error {
	return fault.New(fault.Unavailable, "the database is not responding; try again").Because(err).After(time.Second)
}
