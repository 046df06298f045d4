package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/failpoint"
)

var (
	// ErrInstalled says that there is an installation already: nothing is merged.
	ErrInstalled = errors.New("there is an installation already, and an import merges nothing")
	// ErrHalf says that an import did not come to its end.
	ErrHalf = errors.New("an import into this installation is under way or was cut short")

	errReplaced = errors.New("another import has begun and replaces this one")
)

// Fits refuses an archive that was made of other tables than these.
func Fits(h archive.Header) error {
	switch {
	case h.Schema > Schema:
		return fmt.Errorf("the file was written by Stepmill %s, which is newer (schema %d, this binary knows %d): upgrade the binary", h.Stepmill, h.Schema, Schema)
	case h.Schema < Schema || !reflect.DeepEqual(h.Tables, Archived()):
		return fmt.Errorf("the file was written by Stepmill %s (schema %d) and this is another one (schema %d): import it with the one that wrote it, then upgrade", h.Stepmill, h.Schema, Schema)
	}
	return nil
}

// Half tells whether the tables hold a part of an installation only.
func (s *Store) Half(ctx context.Context) (bool, error) {
	err := s.read(ctx, refuseHalf)
	if errors.Is(err, ErrHalf) {
		return true, nil
	}
	return false, err
}

func refuseHalf(c Conn) error {
	half := false
	err := c.Query(`SELECT importing IS NOT NULL FROM installation WHERE id = 1`, nil, func(r Row) error { return r.Scan(&half) })
	if err == nil && half {
		err = ErrHalf
	}
	return err
}

// Import writes the rows of an archive into empty tables, many small units one
// after the other. The row of the installation says from the first to the last
// of them that it is not whole; until then nobody serves it, and another import
// may replace it. After an error the tables are empty again, if that can still
// be done.
func Import(ctx context.Context, db Mover, from *archive.Reader, now time.Time) (err error) {
	if err := Fits(from.Header()); err != nil {
		return err
	}
	m := &move{db: db, id: rand.Text(), now: now}
	if err := m.begin(ctx, from.Header().KeyCheck); err != nil {
		return err
	}
	defer func() {
		if err != nil && !errors.Is(err, errReplaced) {
			err = errors.Join(err, m.undo(context.WithoutCancel(ctx)))
		}
	}()
	for _, t := range Tables() {
		if err := m.load(ctx, t, from); err != nil {
			return err
		}
	}
	if _, err := from.Next(); !errors.Is(err, io.EOF) {
		return err
	}
	failpoint.Hit(failpoint.BeforeImportEnd, "")
	return m.end(ctx)
}

// move is an import under way.
type move struct {
	db           Mover
	id           string
	now          time.Time
	installation []any
	last         []archive.Section // of the numbered tables
}

// begin makes the mark that the import is under way. What an earlier one has
// left is removed; rows that come from anywhere else are not.
func (m *move) begin(ctx context.Context, keyCheck []byte) error {
	again := false
	err := m.db.Write(ctx, func(c Conn) error {
		n, err := c.Exec(`UPDATE installation SET importing = $1 WHERE id = 1 AND importing IS NOT NULL`, m.id)
		if again = n == 1; err != nil || again {
			return err
		}
		n, err = c.Exec(`INSERT INTO installation (id, first_workspace_id, key_check, created_at, importing)
			VALUES (1, '', $1, $2, $3) ON CONFLICT (id) DO NOTHING`, keyCheck, m.now, m.id)
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrInstalled
		}
		return checkEmpty(c)
	})
	if err != nil || !again {
		return err
	}
	return m.clear(ctx)
}

// checkEmpty refuses tables that hold rows of no installation.
func checkEmpty(c Conn) error {
	for _, t := range Tables()[1:] {
		found := false
		err := c.Query(`SELECT 1 FROM `+t.Name+` LIMIT 1`, nil, func(Row) error { found = true; return nil })
		if err != nil {
			return err
		}
		if found {
			return fmt.Errorf("table %s holds rows already, and an import merges nothing", t.Name)
		}
	}
	return nil
}

// unit runs fn if no other import has begun meanwhile.
func (m *move) unit(ctx context.Context, fn func(Conn) error) error {
	return m.db.Write(ctx, func(c Conn) error {
		n, err := c.Exec(`UPDATE installation SET importing = $1 WHERE id = 1 AND importing = $1`, m.id)
		if err != nil {
			return err
		}
		if n == 0 {
			return errReplaced
		}
		return fn(c)
	})
}

// clear removes all rows but the mark.
func (m *move) clear(ctx context.Context) error {
	for _, t := range Tables()[1:] {
		statement := `DELETE FROM ` + t.Name + ` WHERE (` + joined(t.Key) + `) IN (SELECT ` + joined(t.Key) + ` FROM ` + t.Name + ` LIMIT $1)`
		for more := true; more; {
			err := m.unit(ctx, func(c Conn) error {
				n, err := c.Exec(statement, importRows)
				more = n == importRows
				return err
			})
			if err != nil {
				return fmt.Errorf("clear %s: %w", t.Name, err)
			}
		}
	}
	return nil
}

// undo leaves the database as it was before.
func (m *move) undo(ctx context.Context) error {
	err := m.clear(ctx)
	if err == nil {
		err = m.unit(ctx, func(c Conn) error {
			_, err := c.Exec(`DELETE FROM installation WHERE id = 1`)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("take back what was imported: %w", err)
	}
	return nil
}

// end makes the installation whole, and with that visible.
func (m *move) end(ctx context.Context) error {
	values := map[string]any{}
	for i, column := range Tables()[0].Columns() {
		if m.installation == nil {
			return fmt.Errorf("%w: it holds no installation", archive.ErrDamaged)
		}
		values[column.Name] = m.installation[i]
	}
	return m.unit(ctx, func(c Conn) error {
		for _, section := range m.last {
			if err := m.db.Resequence(c, section.Table, section.Last); err != nil {
				return fmt.Errorf("number %s: %w", section.Table, err)
			}
		}
		if err := m.db.Moved(c); err != nil {
			return err
		}
		_, err := c.Exec(`UPDATE installation SET first_workspace_id = $1, key_check = $2, created_at = $3, importing = NULL WHERE id = 1`,
			values["first_workspace_id"], values["key_check"], values["created_at"])
		return err
	})
}
