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

	"github.com/stepmill/stepmill/internal/store"
)

// statement is one to be run, and, once it has run, what came of it.
type statement struct {
	text string
	args []any
	// lock says that it takes one, last that this one is for the end of a unit.
	lock, last bool
	// want says that its rows are wanted, expect that it has to meet one, and plain
	// that nothing of it is wanted but its effect.
	want     bool
	plain    bool
	expect   bool
	later    func(store.Row) error // set for one whose first argument can be that of several
	twin     *statement            // one that was sent in its place
	affected int64
	tag      string
	result   result
}

// writes tells whether the statement has left something behind that only the
// end of the transaction takes back.
func (s *statement) writes() bool {
	return !s.want && !s.expect || !strings.HasPrefix(s.text, "SELECT")
}

// disappoints tells that a statement has run and not met what it was to.
func (s *statement) disappoints() bool {
	if s.twin != nil {
		return s.twin.disappoints()
	}
	return s.expect && s.affected != 1
}

// result has the rows of a statement, read whole: the connection is free for
// the next one while they are looked at.
type result struct {
	fields []pgconn.FieldDescription
	rows   [][][]byte
}

// transaction is one on a connection. It begins with the first statement, in
// the same round trip.
type transaction struct {
	conn  *pgx.Conn
	begin []string
	begun bool
	// id is that of the transaction in the database, which remembers what became
	// of it; zero while it is not known. mark is that of the recovery before it.
	id   int64
	mark *string
	// held are the locks that it has, by their statements and numbers.
	held map[heldLock]bool
}

type heldLock struct {
	text   string
	number any
}

// needs tells whether a statement has to be sent: locks last for the
// transaction, which units of a group share.
func (t *transaction) needs(s *statement) bool {
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

// send runs statements in one round trip. After an error nothing of the
// transaction can be kept.
func (t *transaction) send(ctx context.Context, statements []*statement) error {
	batch := &pgx.Batch{}
	opening := 0
	if !t.begun {
		for _, text := range t.begin {
			batch.Queue(text)
		}
		opening = len(t.begin)
		t.begun = true
	}
	sent := make([]*statement, 0, len(statements))
	for _, s := range statements {
		if t.needs(s) {
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
	answers := t.conn.SendBatch(ctx, batch)
	err := t.receive(answers, opening, sent)
	if closing := answers.Close(); err == nil { // else it is the same once more
		err = closing
	}
	return err
}

func (t *transaction) receive(answers pgx.BatchResults, opening int, statements []*statement) error {
	for i := range opening {
		if t.begin[i] == transactionID {
			if err := answers.QueryRow().Scan(&t.id, &t.mark); err != nil {
				return err
			}
			continue
		}
		if _, err := answers.Exec(); err != nil {
			return err
		}
	}
	for _, s := range statements {
		if err := s.receive(answers); err != nil {
			return fmt.Errorf("%w (in %.60q)", unmet(err), s.text)
		}
	}
	return nil
}

// unmet tells of an assertion in a statement that does not hold. It is a division
// by what is then zero: nothing else keeps what follows it, up to a COMMIT in the
// same round trip, from being run.
func unmet(err error) error {
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok && answer.Code == "22012" {
		return fmt.Errorf("%w: %w", store.ErrUnexpected, err)
	}
	return err
}

func (s *statement) receive(answers pgx.BatchResults) error {
	if !s.want {
		tag, err := answers.Exec()
		s.affected, s.tag = tag.RowsAffected(), tag.String()
		return err
	}
	rows, err := answers.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	s.result.fields = slices.Clone(rows.FieldDescriptions()) // theirs is used for the next statement too
	for rows.Next() {
		s.result.rows = append(s.result.rows, keep(rows.RawValues()))
	}
	rows.Close()
	s.affected = rows.CommandTag().RowsAffected()
	return rows.Err()
}

// keep copies a row out of the buffer of the connection.
func keep(raw [][]byte) [][]byte {
	size := 0
	for _, value := range raw {
		size += len(value)
	}
	buffer := make([]byte, 0, size)
	kept := make([][]byte, len(raw))
	for i, value := range raw {
		if value == nil {
			continue
		}
		start := len(buffer)
		buffer = append(buffer, value...)
		kept[i] = buffer[start:len(buffer):len(buffer)]
	}
	return kept
}

// argument is a value as the database takes it.
func argument(arg any) any {
	switch v := arg.(type) {
	case time.Time:
		return v.UnixMicro()
	case []byte:
		if v == nil {
			return []byte{} // NULL is nil itself
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

// each hands the rows of a statement to a function.
func (s *statement) each(conn *pgx.Conn, fn func(store.Row) error) error {
	result := s.result
	if s.twin != nil {
		result = s.twin.result
	}
	for _, values := range result.rows {
		if err := fn(row{conn.TypeMap(), result.fields, values}); err != nil {
			return err
		}
	}
	return nil
}
