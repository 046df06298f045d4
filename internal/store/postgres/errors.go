package postgres

import (
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stepmill/stepmill/internal/fault"
)

// kind says what an error means for the unit that met it.
type kind int

const (
	none     kind = iota
	other         // an error of the unit itself
	conflict      // another unit was in the way
	away          // the database is not there, and nothing was written
	unknown       // it is not known whether the unit was written
	full          // the disk of the database is full
	readOnly      // the database takes no writes
)

// awayError says that the database cannot be reached.
type awayError struct{ error }

func (e *awayError) Unwrap() error { return e.error }

// unknownError says that nobody knows whether a unit was committed.
type unknownError struct{ error }

func (e *unknownError) Unwrap() error { return e.error }

// refused tells that the database has answered, with an error.
func refused(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && !goingAway(answer)
}

// goingAway tells that the database has ended the connection with its answer:
// what it was doing then may or may not be done.
func goingAway(answer *pgconn.PgError) bool {
	switch answer.SeverityUnlocalized {
	case "FATAL", "PANIC":
		return true
	}
	return strings.HasPrefix(answer.Code, "08")
}

func classify(err error) kind {
	if err == nil {
		return none
	}
	if _, known := fault.As(err); known {
		return other
	}
	var (
		lost   *awayError
		open   *unknownError
		answer *pgconn.PgError
	)
	switch {
	case errors.As(err, &open):
		return unknown
	case errors.As(err, &lost):
		return away
	case !errors.As(err, &answer):
		if connectionLost(err) {
			return away
		}
		return other
	case goingAway(answer):
		return away
	}
	switch answer.Code {
	case "40001", "40P01", // serialization failure, deadlock
		"55P03", // lock timeout
		"23505": // two units made the same row
		return conflict
	case "57014": // statement timeout
		return away
	case "53100":
		return full
	case "25006":
		return readOnly
	}
	return other
}

// connectionLost tells an error of the connection from one that a unit returned.
func connectionLost(err error) bool {
	var (
		connect *pgconn.ConnectError
		network interface{ Timeout() bool }
	)
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || pgconn.Timeout(err) ||
		isEnd(err) || strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "conn busy")
}

// explain turns an error of the database into one for clients; other errors
// come from above and stay what they are.
func explain(err error, k kind) error {
	switch k {
	case conflict:
		return fault.New(fault.Unavailable, "the store is busy; try again").Because(err).After(time.Second)
	case away:
		return fault.New(fault.Unavailable, "the database does not answer; nothing was changed").Because(err).After(time.Second)
	case unknown:
		return fault.New(fault.Unavailable, "the database was lost; whether this was written is not known").Because(err).After(time.Second)
	case full:
		return fault.New(fault.StorageFull, "the disk of the database is full; nothing was changed").Because(err)
	case readOnly:
		return fault.New(fault.StorageReadOnly, "the database takes no writes; nothing was changed").Because(err).After(10 * time.Second)
	}
	return err
}
