package postgres_test

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/test/faultproxy"
)

// ear hears what a bell tells.
type ear struct {
	mu    sync.Mutex
	heard map[postgres.News]int
}

func (e *ear) hear(n postgres.News) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.heard == nil {
		e.heard = map[postgres.News]int{}
	}
	e.heard[n]++
}

func (e *ear) count(kind byte, id string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heard[postgres.News{Kind: kind, ID: id}]
}

func (e *ear) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.heard)
}

// ring makes a bell that rings until the test ends.
func ring(t *testing.T, opts postgres.Options, node string, listen *pgx.ConnConfig) (*postgres.Bell, *ear) {
	t.Helper()
	db, e := open(t, opts), &ear{}
	bell := postgres.NewBell(db, node, listen, e.hear, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = bell.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return bell, e
}

func listening(t *testing.T, opts postgres.Options) *pgx.ConnConfig {
	t.Helper()
	config, err := new(postgres.DB).Configure(opts, 1)
	if err != nil {
		t.Fatal(err)
	}
	return config.ConnConfig
}

// connect is a connection of its own, until the test ends.
func connect(t *testing.T, opts postgres.Options) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), listening(t, opts))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// eventually waits for something that has to come.
func eventually(t *testing.T, what string, come func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !come(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it does not come", what)
		}
	}
}

func TestBell(t *testing.T) {
	t.Parallel()
	opts := newDatabase(t)
	a, heardByA := ring(t, opts, "a", listening(t, opts))
	b, heardByB := ring(t, opts, "b", listening(t, opts))
	eventually(t, "both listen", func() bool { return !a.Deaf() && !b.Deaf() })
	a.Tell(postgres.RunCancelled, "run_1")
	a.Tell(postgres.Deliverable, "")
	eventually(t, "b hears of a run", func() bool { return heardByB.count(postgres.RunCancelled, "run_1") == 1 })
	eventually(t, "b hears of a delivery", func() bool { return heardByB.count(postgres.Deliverable, "") == 1 })
	if heardByA.count(postgres.RunCancelled, "run_1") > 0 {
		t.Error("a hears itself")
	}

	t.Run("too much for one message", func(t *testing.T) {
		heardByB.forget()
		a.Tell(postgres.RunCancelled, "run_3")
		for _, kind := range []byte{postgres.RunChanged, postgres.RunEnded} {
			for range 2000 {
				a.Tell(kind, uid.New(uid.Run))
			}
		}
		eventually(t, "b hears that runs have changed", func() bool { return heardByB.count(postgres.RunChanged, "") > 0 })
		eventually(t, "b hears that runs have ended", func() bool { return heardByB.count(postgres.RunEnded, "") > 0 })
		eventually(t, "b hears which run was cancelled", func() bool { return heardByB.count(postgres.RunCancelled, "run_3") == 1 })
		if heardByB.count(postgres.Everything, "") > 0 {
			t.Error("b hears of everything")
		}
	})
	t.Run("as much as fits", func(t *testing.T) {
		heardByB.forget()
		time.Sleep(150 * time.Millisecond) // what is told now is told together
		kinds := []byte{
			postgres.RunChanged, postgres.RunEnded, postgres.RunCancelled, postgres.RunStirred, postgres.EventRecorded, postgres.WorkflowDeleted,
			postgres.Deliverable, postgres.Scheduled,
		}
		told := map[postgres.News]bool{}
		for _, kind := range kinds {
			for range 24 {
				news := postgres.News{Kind: kind, ID: uid.New(uid.Run)}
				told[news] = true
				a.Tell(news.Kind, news.ID)
			}
		}
		for news := range told {
			eventually(t, "b hears all of it", func() bool { return heardByB.count(news.Kind, news.ID) == 1 })
		}
	})
	t.Run("alone nobody is told", func(t *testing.T) {
		a.Alone(true)
		heardByB.forget()
		a.Tell(postgres.RunChanged, "quiet")
		a.Alone(false)
		eventually(t, "b hears of everything", func() bool { return heardByB.count(postgres.Everything, "") > 0 })
		if heardByB.count(postgres.RunChanged, "quiet") > 0 {
			t.Error("one who is alone tells others")
		}
	})
	t.Run("after the connection was lost", func(t *testing.T) {
		heardByB.forget()
		exec(t, open(t, opts), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`)
		eventually(t, "b listens again and takes nothing for granted", func() bool { return heardByB.count(postgres.Everything, "") > 0 })
		eventually(t, "b is not deaf", func() bool { return !b.Deaf() })
		a.Tell(postgres.RunEnded, "run_2")
		eventually(t, "b hears again", func() bool { return heardByB.count(postgres.RunEnded, "run_2") == 1 })
	})
}

// Who cannot listen looks.
func TestBellOfTheDeaf(t *testing.T) {
	t.Parallel()
	bell, heard := ring(t, newDatabase(t), "a", nil)
	for _, kind := range []byte{postgres.RunEnded, postgres.EventRecorded, postgres.Deliverable, postgres.Everything} {
		eventually(t, "it looks for "+string(kind), func() bool { return heard.count(kind, "") >= 1 })
	}
	if !bell.Deaf() {
		t.Error("one that cannot listen is not deaf")
	}
}

// What could not be told is made up for: others are told to look at everything.
func TestBellThatCannotRing(t *testing.T) {
	t.Parallel()
	direct := newDatabase(t)
	at, err := url.Parse(direct.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := faultproxy.Start(t, faultproxy.Options{Target: at.Host})
	far := direct
	far.URL = strings.Replace(direct.URL, at.Host, proxy.Addr(), 1)
	a, _ := ring(t, far, "a", nil)
	b, heard := ring(t, direct, "b", listening(t, direct))
	eventually(t, "b listens", func() bool { return !b.Deaf() && heard.count(postgres.Everything, "") > 0 })
	heard.forget()
	proxy.Refuse(true)
	proxy.Cut()
	a.Tell(postgres.RunCancelled, "run_1")
	time.Sleep(200 * time.Millisecond) // it fails to ring
	proxy.Refuse(false)
	eventually(t, "b hears of it, or that there is something", func() bool {
		return heard.count(postgres.RunCancelled, "run_1")+heard.count(postgres.Everything, "") > 0
	})
}

// A network that swallows everything is noticed.
func TestBellInSilence(t *testing.T) {
	t.Parallel()
	opts := newDatabase(t)
	at, err := url.Parse(opts.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := faultproxy.Start(t, faultproxy.Options{Target: at.Host})
	far := opts
	far.URL = strings.Replace(opts.URL, at.Host, proxy.Addr(), 1)
	bell, _ := ring(t, opts, "a", listening(t, far))
	eventually(t, "it listens", func() bool { return !bell.Deaf() })
	proxy.BlackHole(true)
	eventually(t, "it notices", bell.Deaf)
	proxy.BlackHole(false)
	eventually(t, "it listens again", func() bool { return !bell.Deaf() })
}
