// Package sqlite is the embedded database: one file in the data directory, one
// writer that commits in groups, and a pool of readers. It implements
// store.Driver. Apart from the migrations it knows nothing about the tables.
package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/txn"
)

// FileName is the name of the database in the data directory.
const FileName = "stepmill.db"

// DB is an open database.
type DB struct {
	path    string
	open    opener // for connections that read
	writer  *writer
	readers *pool
	counts  *counts
	check   check
}

// Options configure how to open a database.
type Options struct {
	// Migrate creates the file and brings the schema up to date. Without it, a
	// missing file or an older schema is an error.
	Migrate bool
	// ReadOnly opens a database that cannot be written to: writes fail. No process may
	// write to it meanwhile, and it must have no log (see HasLog).
	ReadOnly bool
	// UnsafeFilesystem accepts a network file system, where locks and flushes may
	// not be reliable enough for durability.
	UnsafeFilesystem bool
	// ReadLimit bounds a read; zero means the default of 5 seconds. Tests that
	// read a lot on a busy machine raise it.
	ReadLimit time.Duration
	// LogLimit is the limit of the size of the write-ahead log; zero means the default of
	// 256 MiB.
	LogLimit int64
	// WriteLimit bounds the statements of a write, without its flush; zero means
	// txn.Limit.
	WriteLimit time.Duration
	// Readers is the number of connections that read; zero means two for each
	// processor, and at least four. Each costs time to open, so tests that open many
	// databases use fewer.
	Readers int
}

// Open opens the database in a data directory.
func Open(ctx context.Context, dir string, opts Options) (*DB, error) {
	if !opts.Migrate {
		return open(ctx, dir, opts)
	}
	return openWithReserve(ctx, dir, func(ctx context.Context) (*DB, error) { return open(ctx, dir, opts) })
}

func open(ctx context.Context, dir string, opts Options) (_ *DB, err error) {
	path := filepath.Join(dir, FileName)
	defer func() {
		if isDamage(err) {
			err = damaged(path, err)
		}
	}()
	if err := checkFilesystem(dir); err != nil && !opts.UnsafeFilesystem {
		return nil, err
	}
	// Only the server can tell a crash from another running process.
	unclean := opts.Migrate && closedUncleanly(path)
	later := false
	if err := prepare(ctx, path, opts); err != nil {
		return nil, err
	}
	openWriter, openReader := openers(path, opts.ReadOnly)
	raw, err := openWriter()
	if err != nil {
		return nil, err
	}
	if unclean {
		if later, err = checkAfterCrash(raw, path); err != nil {
			return nil, errors.Join(err, raw.Close())
		}
	}
	db := &DB{path: path, open: openReader, counts: newCounts(), check: check{later: later}}
	log := walLimit{path: path + "-wal", limit: cmp.Or(opts.LogLimit, logLimit()), exceeded: &atomic.Bool{}, onExceeded: db.check.interrupt}
	// SQLite shrinks the file to this size when it begins the log anew.
	c := newConn(raw)
	if err := c.run(fmt.Sprintf("PRAGMA journal_size_limit = %d", log.limit/logParts)); err != nil {
		return nil, errors.Join(err, c.close())
	}
	db.readers, err = newPool(openReader, cmp.Or(opts.Readers, max(4, 2*runtime.GOMAXPROCS(0))), cmp.Or(opts.ReadLimit, readLimit))
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	db.writer = &writer{
		conn: c, limit: cmp.Or(opts.WriteLimit, txn.Limit), log: log, counts: db.counts,
		queue: make(chan *writeRequest, queueLength), tasks: make(chan func()), done: make(chan struct{}),
	}
	return db, nil
}

// Run commits writes until the context ends, then writes what is queued and
// closes the database. It returns early only if the disk fails: after that no
// unacknowledged write can be trusted, and the process must exit.
func (db *DB) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var checking sync.WaitGroup
	if db.check.later {
		checking.Go(func() {
			if err := db.checkWhileServing(ctx); err != nil {
				cancel(err)
			}
		})
	}
	err := db.writer.run(ctx)
	cancel(nil) // do not wait for a running check
	checking.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(err, cause)
	}
	return errors.Join(err, db.readers.close(), db.writer.close())
}

// Busy returns how long the current commit has taken, or the longest of the
// current reads if that is longer. It is zero if there is neither.
func (db *DB) Busy() time.Duration { return max(db.writer.busy.elapsed(), db.readers.busy()) }

// Read implements store.Driver.
func (db *DB) Read(ctx context.Context, fn func(database.Conn) error) error {
	err := db.readers.read(ctx, fn)
	if isDatabaseError(err) {
		db.counts.failed(err)
	}
	return err
}

// ReadAll implements store.Driver.
func (db *DB) ReadAll(ctx context.Context, queries func() []database.Query) error {
	return db.Read(ctx, func(c database.Conn) error {
		for _, q := range queries() {
			if err := c.Query(q.Statement, q.Args, q.Each); err != nil {
				return err
			}
		}
		return nil
	})
}

// Write implements store.Driver.
func (db *DB) Write(ctx context.Context, fn func(database.Conn) error) error {
	return db.writer.write(ctx, fn)
}

// WriteRun implements store.Driver.
func (db *DB) WriteRun(ctx context.Context, _ string, fn func(database.Conn) error) error {
	return db.writer.write(ctx, fn)
}

type opener func() (*sqlite.Conn, error)

// openers returns how to open the connections that write and those that read.
func openers(path string, readOnly bool) (writer, reader opener) {
	if readOnly {
		open := func() (*sqlite.Conn, error) { return openImmutable(path) }
		return open, open
	}
	return func() (*sqlite.Conn, error) { return openConn(path, false) }, func() (*sqlite.Conn, error) { return openConn(path, true) }
}

// settings apply to every connection. Acknowledged writes must survive a power failure, so every
// commit is flushed. Nothing is mapped into memory, because a page fault on a disk that does not
// respond would stop the whole process, and not only one thread.
func settings(readOnly bool) []string {
	list := []string{
		"PRAGMA synchronous = FULL",
		"PRAGMA foreign_keys = ON",
		"PRAGMA temp_store = MEMORY",
		"PRAGMA mmap_size = 0",
		"PRAGMA wal_autocheckpoint = 1000",
		"PRAGMA cache_size = -16000",
	}
	if runtime.GOOS == "darwin" {
		list = append(list, "PRAGMA fullfsync = 1", "PRAGMA checkpoint_fullfsync = 1")
	}
	if readOnly {
		list = append(list, "PRAGMA query_only = 1", "PRAGMA cache_size = -4000")
	}
	return list
}

const busyTimeout = 5 * time.Second

// URI returns the URI that opens a database in such a way that no other process can
// open it at the same time. The index of the write-ahead log is then in memory: a
// mapped file would stop the whole process, and not only one thread, while the file
// system does not respond.
func URI(path string) string {
	uri := fileURI(path)
	if runtime.GOOS != "windows" { // has no such mode
		uri += "?vfs=unix-excl"
	}
	return uri
}

// immutableURI returns the URI that opens a database which nobody changes. SQLite then
// creates no files beside it, takes no locks, and does not read its write-ahead log.
func immutableURI(path string) string { return fileURI(path) + "?immutable=1" }

// fileURI escapes the path, because # and ? have a meaning in a URI.
func fileURI(path string) string { return "file:" + (&url.URL{Path: path}).EscapedPath() }

func openConn(path string, readOnly bool) (*sqlite.Conn, error) {
	return openURI(path, URI(path), sqlite.OpenReadWrite|sqlite.OpenWAL, readOnly)
}

// openImmutable opens a database that cannot be written to. It fails if there is a log,
// whose changes would be missing.
func openImmutable(path string) (*sqlite.Conn, error) {
	if closedUncleanly(path) {
		return nil, fmt.Errorf("open %s: its write-ahead log cannot be read where nothing can be written", path)
	}
	return openURI(path, immutableURI(path), sqlite.OpenReadOnly, true)
}

func openURI(path, uri string, flags sqlite.OpenFlags, readOnly bool) (*sqlite.Conn, error) {
	raw, err := sqlite.OpenConn(uri, flags|sqlite.OpenURI)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	raw.SetBusyTimeout(busyTimeout)
	c := newConn(raw)
	defer c.finalize()
	for _, text := range settings(readOnly) {
		if err := c.run(text); err != nil {
			c.finalize()
			return nil, errors.Join(fmt.Errorf("open %s: %s: %w", path, text, err), raw.Close())
		}
	}
	return raw, nil
}

// HasLog reports whether the database in a data directory has changes in its write-ahead
// log, because the last process that used it did not close it.
func HasLog(dir string) bool { return closedUncleanly(filepath.Join(dir, FileName)) }

// closedUncleanly reports whether the last process that used the file did not
// close it: its write-ahead log is still there.
func closedUncleanly(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}
