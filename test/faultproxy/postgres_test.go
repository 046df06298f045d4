package faultproxy_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stepmill/stepmill/test/faultproxy"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/postgres"
)

// proxiedDatabase is a database with a proxy in front of it.
type proxiedDatabase struct {
	*faultproxy.Proxy
	direct *pgx.Conn
	url    string // through the proxy
}

func newProxiedDatabase(t *testing.T, seed uint64) *proxiedDatabase {
	t.Helper()
	lane.LongOnly(t)
	url := postgres.Shared(t).NewDatabase(t)
	direct, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = direct.Close(context.Background()) })
	if _, err := direct.Exec(t.Context(), "CREATE TABLE t (n int)"); err != nil {
		t.Fatal(err)
	}
	target := direct.PgConn().Conn().RemoteAddr().String()
	p := faultproxy.Start(t, faultproxy.Options{Target: target, Postgres: true, Seed: seed})
	return &proxiedDatabase{p, direct, strings.Replace(url, target, p.Addr(), 1)}
}

func (s *proxiedDatabase) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(s.url)
	if err != nil {
		t.Fatal(err)
	}
	// Messages arrive in fragments.
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return fragmenting{conn}, err
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// fragmenting is a connection that sends small fragments of odd sizes, which grow with
// the length of a message.
type fragmenting struct{ net.Conn }

func (d fragmenting) Write(data []byte) (int, error) {
	sent := 0
	for size := 1; sent < len(data); size = size*2 + 1 {
		n, err := d.Conn.Write(data[sent:min(sent+size, len(data))])
		if sent += n; err != nil {
			return sent, err
		}
	}
	return sent, nil
}

func (s *proxiedDatabase) rows(t *testing.T) int {
	t.Helper()
	var n int
	if err := s.direct.QueryRow(t.Context(), "SELECT count(*) FROM t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// commitMethods are the ways in which a client can commit a row.
var commitMethods = []struct {
	name string
	do   func(context.Context, *pgx.Conn) error
}{
	{"simple query", func(ctx context.Context, conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO t VALUES ($1)", 1)
			return err
		})
	}},
	{"several statements in a query", func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "BEGIN; INSERT INTO t VALUES (1);\n-- done\nCOMMIT;")
		return err
	}},
	{"prepared statement", func(ctx context.Context, conn *pgx.Conn) error {
		for _, sql := range []string{"BEGIN", "INSERT INTO t VALUES (1)", "/* now */ Commit"} {
			prepared, err := conn.Prepare(ctx, "the "+sql, sql)
			if err != nil {
				return err
			}
			if _, err := conn.PgConn().ExecPrepared(ctx, prepared.Name, nil, nil, nil).Close(); err != nil {
				return err
			}
		}
		return nil
	}},
	{"pipeline", func(ctx context.Context, conn *pgx.Conn) error {
		batch := &pgx.Batch{}
		for _, sql := range []string{"BEGIN", "INSERT INTO t VALUES (1)", "END", "SELECT 1"} {
			batch.Queue(sql)
		}
		return conn.SendBatch(ctx, batch).Close()
	}},
	{"pipeline with a response to each", func(ctx context.Context, conn *pgx.Conn) error {
		pipeline := conn.PgConn().StartPipeline(ctx)
		for _, sql := range []string{"BEGIN", "INSERT INTO t VALUES (1)", "COMMIT", "SELECT 1"} {
			pipeline.SendQueryParams(sql, nil, nil, nil, nil)
			if err := pipeline.Sync(); err != nil {
				return err
			}
		}
		return pipeline.Close()
	}},
}

func TestLostCommitResponse(t *testing.T) {
	t.Parallel()
	for _, method := range commitMethods {
		t.Run(method.name, func(t *testing.T) {
			t.Parallel()
			s := newProxiedDatabase(t, 1)
			if err := method.do(t.Context(), s.connect(t)); err != nil {
				t.Fatalf("before any fault: %v", err)
			}
			s.LoseCommits(faultproxy.Commits{Probability: 1})
			if err := method.do(t.Context(), s.connect(t)); err == nil {
				t.Error("the client got a response to its commit")
			}
			if got := s.rows(t); got != 2 {
				t.Errorf("there are %d rows, want 2: the server had committed", got)
			}
			s.LoseCommits(faultproxy.Commits{Probability: 1, Early: 1})
			conn := s.connect(t)
			s.Refuse(true) // pgx also tries to cancel the query
			if err := method.do(t.Context(), conn); err == nil {
				t.Error("the client got a response to its commit")
			}
			for deadline := time.Now().Add(timeout); s.rows(t) != 3; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("a commit that was sent has no effect: %+v", s.Counts())
				}
			}
			if got := s.Counts(); got.Commits != 3 || got.Lost != 2 || got.LostEarly != 1 {
				t.Errorf("counted %+v", got)
			}
		})
	}
}

func TestOtherStatementsAreNotCut(t *testing.T) {
	t.Parallel()
	s := newProxiedDatabase(t, 1)
	s.LoseCommits(faultproxy.Commits{Probability: 1})
	conn := s.connect(t)
	for _, sql := range []string{
		"SELECT 1", "INSERT INTO t VALUES (1)", "BEGIN", "INSERT INTO t VALUES (2)", "SAVEPOINT commit",
		"ROLLBACK TO commit", "ROLLBACK", "SELECT 'commit'",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	s.LoseCommits(faultproxy.Commits{Probability: 1, Implicit: true})
	for _, sql := range []string{"SELECT 1", "BEGIN", "INSERT INTO t VALUES (2)", "ROLLBACK"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if _, err := conn.Exec(t.Context(), "INSERT INTO t VALUES ($1)", 3); err == nil {
		t.Error("the client got a response to a write that commits implicitly")
	}
	if got := s.rows(t); got != 2 {
		t.Errorf("there are %d rows, want 2", got)
	}
	if got := s.Counts(); got.Commits != 1 || got.Lost != 1 {
		t.Errorf("counted %+v", got)
	}
}

func TestSameSeedGivesSameFaults(t *testing.T) {
	t.Parallel()
	outcomes := func(seed uint64) (row string) {
		s := newProxiedDatabase(t, seed)
		s.LoseCommits(faultproxy.Commits{Probability: 0.3, Early: 0.5})
		conn := s.connect(t)
		for range 60 {
			if conn.IsClosed() {
				conn = s.connect(t)
			}
			if commitMethods[0].do(t.Context(), conn) == nil {
				row += "."
			} else {
				row += "x"
			}
		}
		if got := s.Counts(); got.Commits != 60 || got.Lost != strings.Count(row, "x") || got.LostEarly == 0 || got.LostEarly == got.Lost {
			t.Errorf("counted %+v for %s", got, row)
		}
		return row
	}
	first := outcomes(7)
	if n := strings.Count(first, "x"); n < 5 || n > 40 {
		t.Errorf("%d of 60 responses were lost, want 5 to 40", n)
	}
	if second := outcomes(7); first != second {
		t.Errorf("the same seed gave\n%s\n%s", first, second)
	}
	if other := outcomes(8); first == other {
		t.Errorf("two seeds gave the same %s", other)
	}
}

func TestLargeMessagesAreRelayed(t *testing.T) {
	t.Parallel()
	s := newProxiedDatabase(t, 1)
	s.LoseCommits(faultproxy.Commits{Probability: 0})
	conn := s.connect(t)
	large := bytes.Repeat([]byte("commit;Z\x00\x00\x00\x05I"), 200_000)
	for range 3 {
		var got []byte
		if err := conn.QueryRow(t.Context(), "SELECT $1::bytea", large).Scan(&got); err != nil || !bytes.Equal(got, large) {
			t.Fatalf("got %d bytes back, %v", len(got), err)
		}
	}
	if got := s.Counts(); got.Commits != 0 {
		t.Errorf("counted %+v", got)
	}
}

func TestCancelAndEncryptionRequestsAreRelayed(t *testing.T) {
	t.Parallel()
	s := newProxiedDatabase(t, 1)
	s.LoseCommits(faultproxy.Commits{Probability: 1})
	s.url = strings.Replace(s.url, "sslmode=disable", "sslmode=prefer", 1)
	conn := s.connect(t)
	sleeping := make(chan error)
	go func() {
		_, err := conn.Exec(t.Context(), "SELECT pg_sleep(60)")
		sleeping <- err
	}()
	for cancelled := false; !cancelled; {
		if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-sleeping:
			var refused *pgconn.PgError
			if cancelled = true; err == nil || !errors.As(err, &refused) || refused.Code != "57014" {
				t.Errorf("cancelled query: %v", err)
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := commitMethods[0].do(t.Context(), conn); err == nil || s.Counts().Lost != 1 {
		t.Errorf("commit on an unencrypted connection: %v, %+v", err, s.Counts())
	}
}
