// Command ceiling is the smallest server that does what a durable run needs: it
// reads JSON, writes a run with its steps to SQLite in group commits and responds
// after the flush. It has no authentication, no rules and no engine. It shows the
// benchmark what the machine allows.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const schema = `
CREATE TABLE runs (id TEXT PRIMARY KEY, status TEXT, payload TEXT) WITHOUT ROWID;
CREATE TABLE steps (run_id TEXT, path TEXT, output TEXT, PRIMARY KEY (run_id, path)) WITHOUT ROWID;`

type write struct {
	id      string
	payload string
	done    chan error
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir string) error {
	conn, err := sqlite.OpenConn(filepath.Join(dir, "ceiling.db"), sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenWAL)
	if err != nil {
		return err
	}
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA synchronous = FULL", nil); err != nil {
		return err
	}
	if err := sqlitex.ExecuteScript(conn, schema, nil); err != nil {
		return err
	}
	queue := make(chan write, 4096)
	go commitGroups(conn, queue)
	var count atomic.Int64
	http.HandleFunc("POST /runs", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Payload json.RawMessage `json:"payload"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		run := write{id: "run_" + strconv.FormatInt(count.Add(1), 36), payload: string(body.Payload), done: make(chan error, 1)}
		queue <- run
		if err := <-run.done; err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"id": run.id, "status": "succeeded"})
	})
	http.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	})
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("ready at http://%s\n", listener.Addr())
	return (&http.Server{ReadHeaderTimeout: time.Minute}).Serve(listener)
}

// commitGroups accepts and finishes runs in group commits: two commits per group,
// as Stepmill needs.
func commitGroups(conn *sqlite.Conn, queue chan write) {
	for {
		group := []write{<-queue}
		for len(group) < 512 && len(queue) > 0 {
			group = append(group, <-queue)
		}
		err := inTransaction(conn, func() error { return acceptAll(conn, group) })
		if err == nil {
			err = inTransaction(conn, func() error { return finishAll(conn, group) })
		}
		for _, run := range group {
			run.done <- err
		}
	}
}

func acceptAll(conn *sqlite.Conn, group []write) error {
	for _, run := range group {
		if err := exec(conn, "INSERT INTO runs VALUES (?, 'running', ?)", run.id, run.payload); err != nil {
			return err
		}
	}
	return nil
}

func finishAll(conn *sqlite.Conn, group []write) error {
	for _, run := range group {
		for _, path := range []string{"a", "b", "c"} {
			if err := exec(conn, "INSERT INTO steps VALUES (?, ?, ?)", run.id, path, `{"ok":true}`); err != nil {
				return err
			}
		}
		if err := exec(conn, "UPDATE runs SET status = 'succeeded' WHERE id = ?", run.id); err != nil {
			return err
		}
	}
	return nil
}

func inTransaction(conn *sqlite.Conn, do func() error) error {
	if err := exec(conn, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return exec(conn, "COMMIT")
}

func exec(conn *sqlite.Conn, text string, args ...string) error {
	stmt, err := conn.Prepare(text)
	if err != nil {
		return err
	}
	for i, arg := range args {
		stmt.BindText(i+1, arg)
	}
	if _, err := stmt.Step(); err != nil {
		return err
	}
	return stmt.Reset()
}
