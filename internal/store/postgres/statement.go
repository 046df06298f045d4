package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/store"
)

type statement struct {
	text string
	args []any
	// lock is set if it acquires a lock, atEnd if that lock is for the end of a
	// transaction.
	lock, atEnd bool
	// wantRows is set if its rows are needed, expect if it must match one row,
	// and effectOnly if its result is not needed.
	wantRows   bool
	effectOnly bool
	expect     bool
	onCommit   func(database.Row) error // set if it may be merged with others by adding up the first arguments
	sentAs     *statement               // the statement that was sent in its place
	affected   int64
	tag        string
	result     result
}

// writes reports whether the statement may have changed something that only a
// rollback reverts.
func (s *statement) writes() bool {
	return !s.wantRows && !s.expect || !strings.HasPrefix(s.text, "SELECT")
}

// failedExpectation reports whether the statement has run without matching
// exactly one row.
func (s *statement) failedExpectation() bool {
	if s.sentAs != nil {
		return s.sentAs.failedExpectation()
	}
	return s.expect && s.affected != 1
}

// result holds all rows of a statement. They are read completely, so the
// connection is free while they are processed.
type result struct {
	fields []pgconn.FieldDescription
	rows   [][][]byte
}

// transaction is a transaction on a connection. It begins with the first
// statement, in the same round trip.
type transaction struct {
	conn            *pgx.Conn
	begin           []string
	begun           bool
	rollbackTimeout time.Duration
	// id is the transaction id, under which the database remembers the outcome;
	// zero until it is known. mark is the recovery mark at its beginning.
	id   int64
	mark *string
	held map[heldLock]bool
}

type heldLock struct {
	text   string
	number any
}

// mustSend reports whether a statement has to be sent. A lock that is already
// held does not: locks last until the end of the database transaction, which all
// transactions of a group share.
func (t *transaction) mustSend(s *statement) bool {
	if !s.lock {
		return true
	}
	l := heldLock{s.text, s.args[0]}
	if t.held[l] {
		return false
	}
	if t.held == nil {
		t.held = map[heldLock]bool{}
	}
	t.held[l] = true
	return true
}

const (
	begin         = "begin isolation level read committed"
	beginReading  = "begin isolation level repeatable read, read only"
	commit        = "commit"
	transactionID = "SELECT pg_current_xact_id()::text::bigint, (SELECT mark FROM recovery)"
)

// send runs statements in one round trip. After an error the transaction can only
// be rolled back.
func (t *transaction) send(ctx context.Context, statements []*statement) error {
	batch := &pgx.Batch{}
	preamble := 0
	if !t.begun {
		for _, text := range t.begin {
			batch.Queue(text)
		}
		preamble = len(t.begin)
		t.begun = true
	}
	sent := make([]*statement, 0, len(statements))
	for _, s := range statements {
		if t.mustSend(s) {
			sent = append(sent, s)
		}
	}
	sent = merge(sent)
	for _, s := range sent {
		batch.Queue(s.text, s.args...)
	}
	if batch.Len() == 0 {
		return nil
	}
	results := t.conn.SendBatch(ctx, batch)
	err := t.receive(results, preamble, sent)
	if closeErr := results.Close(); err == nil { // otherwise it repeats the same error
		err = closeErr
	}
	return err
}

func (t *transaction) receive(results pgx.BatchResults, preamble int, statements []*statement) error {
	for i := range preamble {
		if t.begin[i] == transactionID {
			if err := results.QueryRow().Scan(&t.id, &t.mark); err != nil {
				return err
			}
			continue
		}
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	for _, s := range statements {
		if err := s.receive(results); err != nil {
			return fmt.Errorf("%w (in %.60q)", asUnexpected(err), s.text)
		}
	}
	return nil
}

// asUnexpected detects a failed assertion in a statement. An assertion is a
// division by zero: nothing else keeps the statements after it, including a
// COMMIT in the same round trip, from running.
func asUnexpected(err error) error {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == "22012" {
		return fmt.Errorf("%w: %w", database.ErrUnexpected, err)
	}
	return err
}

func (s *statement) receive(results pgx.BatchResults) error {
	if !s.wantRows {
		tag, err := results.Exec()
		s.affected, s.tag = tag.RowsAffected(), tag.String()
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	s.result.fields = slices.Clone(rows.FieldDescriptions()) // the buffer is reused for the next statement
	for rows.Next() {
		s.result.rows = append(s.result.rows, cloneRow(rows.RawValues()))
	}
	rows.Close()
	s.affected = rows.CommandTag().RowsAffected()
	return rows.Err()
}

// cloneRow copies a row out of the connection's buffer.
func cloneRow(raw [][]byte) [][]byte {
	size := 0
	for _, value := range raw {
		size += len(value)
	}
	buffer := make([]byte, 0, size)
	clone := make([][]byte, len(raw))
	for i, value := range raw {
		if value == nil {
			continue
		}
		start := len(buffer)
		buffer = append(buffer, value...)
		clone[i] = buffer[start:len(buffer):len(buffer)]
	}
	return clone
}

// toArg converts a value to what the database expects.
func toArg(arg any) any {
	switch v := arg.(type) {
	case time.Time:
		return v.UnixMicro()
	case []byte:
		if v == nil {
			return []byte{} // nil itself means NULL
		}
	case string:
		return store.Text(v)
	case *string:
		if v != nil {
			return store.Text(*v)
		}
	}
	return arg
}

func (s *statement) each(conn *pgx.Conn, fn func(database.Row) error) error {
	result := s.result
	if s.sentAs != nil {
		result = s.sentAs.result
	}
	for _, values := range result.rows {
		if err := fn(row{conn.TypeMap(), result.fields, values}); err != nil {
			return err
		}
	}
	return nil
}
