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
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/store/migrations"
)

var (
	// ErrInstalled means that the database already holds an installation. An
	// import does not merge.
	ErrInstalled = errors.New("the database already holds an installation, and an import does not merge")
	// ErrImportIncomplete means that an import has not finished.
	ErrImportIncomplete = errors.New("an import into this database is still running or was interrupted")

	errReplaced = errors.New("another import started and replaces this one")
)

// CheckSchema rejects an archive with a different schema.
func CheckSchema(h archive.Header) error {
	schema := migrations.Last()
	switch {
	case h.Schema > schema:
		return fmt.Errorf("the file was written by Stepmill %s, which is newer (schema %d, this binary knows %d): upgrade the binary", h.Stepmill, h.Schema, schema)
	case h.Schema < schema || !reflect.DeepEqual(h.Tables, Archived()):
		return fmt.Errorf("the file was written by Stepmill %s (schema %d), and this binary needs schema %d: import it with the version that wrote it, then upgrade", h.Stepmill, h.Schema, schema)
	}
	return nil
}

func checkComplete(c database.Conn) error {
	incomplete := false
	err := c.Query(`SELECT importing IS NOT NULL FROM installation WHERE id = 1`, nil, func(r database.Row) error { return r.Scan(&incomplete) })
	if err == nil && incomplete {
		err = ErrImportIncomplete
	}
	return err
}

// Import writes the rows of an archive into empty tables, in many small
// transactions. Until the last one, the installation row marks the import as
// incomplete: no process serves it, and another import may replace it. After an
// error Import empties the tables again if it can. The bytes of files are stored before
// the rows that refer to them; without a place for them they are ignored.
func Import(ctx context.Context, db Mover, files FilesTarget, from *archive.Reader, now time.Time) (err error) {
	if err := CheckSchema(from.Header()); err != nil {
		return err
	}
	m := &importer{db: db, id: rand.Text(), now: now, files: fileImport{FilesTarget: files}}
	if err := m.begin(ctx, from.Header().KeyCheck); err != nil {
		return err
	}
	defer func() {
		if err != nil && !errors.Is(err, errReplaced) {
			err = errors.Join(err, m.rollback(context.WithoutCancel(ctx)))
		}
	}()
	for i, t := range Exported() {
		if i == fileBytesAt {
			if err := m.files.load(ctx, m.installationID(), from); err != nil {
				return err
			}
		}
		if err := m.load(ctx, t, from); err != nil {
			return err
		}
	}
	if err := m.files.check(); err != nil {
		return err
	}
	if _, err := from.Next(); !errors.Is(err, io.EOF) {
		return err
	}
	failpoint.Hit(failpoint.BeforeImportEnd, "")
	return m.finish(ctx)
}

type importer struct {
	db           Mover
	id           string
	now          time.Time
	installation []any
	files        fileImport
	numbered     []archive.Section // sections of tables with numbered rows
}

// begin marks the import as running. It deletes the rows of an earlier import
// that did not finish, but no other rows.
func (m *importer) begin(ctx context.Context, keyCheck []byte) error {
	replaces := false
	err := m.db.Write(ctx, func(c database.Conn) error {
		n, err := c.Exec(`UPDATE installation SET importing = $1 WHERE id = 1 AND importing IS NOT NULL`, m.id)
		if replaces = n == 1; err != nil || replaces {
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
	if err != nil || !replaces {
		return err
	}
	return m.clear(ctx)
}

// checkEmpty rejects tables that contain rows without an installation.
func checkEmpty(c database.Conn) error {
	for _, t := range Exported()[1:] {
		found := false
		err := c.Query(`SELECT 1 FROM `+t.Name+` LIMIT 1`, nil, func(database.Row) error { found = true; return nil })
		if err != nil {
			return err
		}
		if found {
			return fmt.Errorf("table %s already contains rows, and an import does not merge", t.Name)
		}
	}
	return nil
}

// transaction runs fn unless another import has started meanwhile.
func (m *importer) transaction(ctx context.Context, fn func(database.Conn) error) error {
	return m.db.Write(ctx, func(c database.Conn) error {
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

// clear deletes all rows except the mark.
func (m *importer) clear(ctx context.Context) error {
	for _, t := range Exported()[1:] {
		statement := `DELETE FROM ` + t.Name + ` WHERE (` + sqlList(t.Key) + `) IN (SELECT ` + sqlList(t.Key) + ` FROM ` + t.Name + ` LIMIT $1)`
		for more := true; more; {
			err := m.transaction(ctx, func(c database.Conn) error {
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

func (m *importer) rollback(ctx context.Context) error {
	err := m.clear(ctx)
	if err == nil {
		err = m.files.rollback(ctx)
	}
	if err == nil {
		err = m.transaction(ctx, func(c database.Conn) error {
			_, err := c.Exec(`DELETE FROM installation WHERE id = 1`)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("roll back the import: %w", err)
	}
	return nil
}

// installationID returns the id in the row of the installation; empty: there is none.
func (m *importer) installationID() string {
	for i, column := range Exported()[0].Columns() {
		if m.installation != nil && column.Name == "first_workspace_id" {
			id, _ := m.installation[i].(string)
			return id
		}
	}
	return ""
}

// finish completes the installation, which makes it visible.
func (m *importer) finish(ctx context.Context) error {
	values := map[string]any{}
	for i, column := range Exported()[0].Columns() {
		if m.installation == nil {
			return fmt.Errorf("%w: it contains no installation", archive.ErrDamaged)
		}
		values[column.Name] = m.installation[i]
	}
	return m.transaction(ctx, func(c database.Conn) error {
		for _, section := range m.numbered {
			if err := m.db.Resequence(c, section.Table, section.Last); err != nil {
				return fmt.Errorf("resequence %s: %w", section.Table, err)
			}
		}
		if err := m.db.AfterImport(c); err != nil {
			return err
		}
		if err := m.files.record(c); err != nil {
			return err
		}
		_, err := c.Exec(`UPDATE installation SET first_workspace_id = $1, key_check = $2, created_at = $3, importing = NULL WHERE id = 1`,
			values["first_workspace_id"], values["key_check"], values["created_at"])
		return err
	})
}
