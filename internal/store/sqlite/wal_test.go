package sqlite_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// openLimited opens a database whose log is limited to 4 MiB.
func openLimited(t *testing.T) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), newDir(t), sqlite.Options{Migrate: true, ReadLimit: time.Hour, WriteLimit: time.Hour, LogLimit: 4 << 20, Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- db.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return db
}

// While readers come and go, the log stays below its limit, also with few large commits.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	db := openLimited(t)
	for range 30 {
		fill(t, db, "row"+time.Now().String(), 10)
		keys(t, db)
		if log := db.Log(); log.Bytes > log.Limit || log.Exceeded {
			t.Fatalf("the log: %+v", log)
		}
	}
}

// A reader that does not end is named when the log exceeds its limit. After it has ended,
// the log shrinks although writes go on.
func TestReaderHoldsLog(t *testing.T) {
	t.Parallel()
	db := openLimited(t)
	reading, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- db.Read(t.Context(), func(c database.Conn) error {
			_, err := column(c, allKeys)
			close(reading)
			<-end
			return err
		})
	}()
	<-reading
	fill(t, db, "during", 60)
	if log := db.Log(); !log.Exceeded || log.Bytes < log.Limit || !strings.HasPrefix(log.HeldBy, "a read that has taken ") {
		t.Errorf("while a reader holds the log: %+v", log)
	}
	close(end)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); db.Log().Exceeded && time.Since(begun) < 5*time.Minute; {
		fill(t, db, "after"+time.Now().String(), 1)
	}
	if log := db.Log(); log.Exceeded || log.Bytes > log.Limit {
		t.Errorf("after the reader: %+v", log)
	}
}
