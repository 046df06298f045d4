package postgres

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stepmill/stepmill/internal/fault"
)

// kind classifies an error by what it means for the transaction.
type kind int

const (
	none        kind = iota
	other            // returned by the transaction's own code
	conflict         // with another transaction
	unavailable      // the database is unavailable, and nothing was written
	unknown          // it is not known whether the transaction was committed
	full             // the database's disk is full
	readOnly         // the database rejects writes
)

// unavailableError means that the database cannot be reached.
type unavailableError struct{ error }

func (e *unavailableError) Unwrap() error { return e.error }

// unknownOutcomeError means that it is not known whether a transaction was
// committed.
type unknownOutcomeError struct{ error }

func (e *unknownOutcomeError) Unwrap() error { return e.error }

// rejected reports whether the database responded with an error.
func rejected(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && !closesConnection(pgErr)
}

// closesConnection reports whether the database closed the connection with this
// error. What it was doing at the time may or may not be done.
func closesConnection(pgErr *pgconn.PgError) bool {
	switch pgErr.SeverityUnlocalized {
	case "FATAL", "PANIC":
		return true
	}
	return strings.HasPrefix(pgErr.Code, "08")
}

func classify(err error) kind {
	if err == nil {
		return none
	}
	if _, known := fault.As(err); known {
		return other
	}
	var (
		unavailableErr *unavailableError
		unknownErr     *unknownOutcomeError
		pgErr          *pgconn.PgError
	)
	switch {
	case errors.As(err, &unknownErr):
		return unknown
	case errors.As(err, &unavailableErr):
		return unavailable
	case !errors.As(err, &pgErr):
		if connectionLost(err) {
			return unavailable
		}
		return other
	case closesConnection(pgErr):
		return unavailable
	}
	switch pgErr.Code {
	case "40001", "40P01", // serialization failure, deadlock
		"55P03", // lock timeout
		"23505": // two transactions inserted the same row
		return conflict
	case "57014": // statement timeout
		return unavailable
	case "53100":
		return full
	case "25006":
		return readOnly
	}
	return other
}

// connectionLost distinguishes errors of the connection from those of the
// transaction's own code.
func connectionLost(err error) bool {
	var (
		connect *pgconn.ConnectError
		network interface{ Timeout() bool }
	)
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || pgconn.Timeout(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "conn busy")
}

// explain turns an error of the database into one for clients. Other errors come
// from the callers' code and are returned unchanged.
func explain(err error, k kind) error {
	switch k {
	case conflict:
		return fault.New(fault.Unavailable, "the store is busy; try again").Because(err).After(time.Second)
	case unavailable:
		return fault.New(fault.Unavailable, "the database is not responding; nothing was changed").Because(err).After(time.Second)
	case unknown:
		return fault.New(fault.Unavailable, "the connection to the database was lost; it is not known whether the change was saved").Because(err).After(time.Second)
	case full:
		return fault.New(fault.StorageFull, "the database's disk is full; nothing was changed").Because(err)
	case readOnly:
		return fault.New(fault.StorageReadOnly, "the database is read-only; nothing was changed").Because(err).After(10 * time.Second)
	}
	return err
}
