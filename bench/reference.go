package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// rawCommits measures how many single-row transactions per second one SQLite
// connection commits and flushes.
func rawCommits(dir string, length time.Duration) (float64, error) {
	conn, err := sqlite.OpenConn(filepath.Join(dir, "raw.db"), sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenWAL)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	for _, text := range []string{"PRAGMA synchronous = FULL", "CREATE TABLE t (id TEXT PRIMARY KEY, body TEXT) WITHOUT ROWID"} {
		if err := sqlitex.ExecuteTransient(conn, text, nil); err != nil {
			return 0, err
		}
	}
	insert, err := conn.Prepare("INSERT INTO t VALUES (?, ?)")
	if err != nil {
		return 0, err
	}
	count, begun := 0, time.Now()
	for time.Since(begun) < length {
		insert.BindText(1, fmt.Sprintf("run_%026d", count))
		insert.BindText(2, `{"payload":{"name":"Ada"}}`)
		if _, err := insert.Step(); err != nil {
			return 0, err
		}
		if err := insert.Reset(); err != nil {
			return 0, err
		}
		count++
	}
	return float64(count) / time.Since(begun).Seconds(), nil
}

// flushes measures how many 4 KiB writes per second the disk can flush.
func flushes(dir string, length time.Duration) (float64, error) {
	file, err := os.Create(filepath.Join(dir, "flush"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	block := make([]byte, 4096)
	count, begun := 0, time.Now()
	for time.Since(begun) < length {
		if _, err := file.WriteAt(block, int64(count%1024)*4096); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		count++
	}
	return float64(count) / time.Since(begun).Seconds(), nil
}
