// Command ceiling is the least server that could do what a durable run needs:
// it reads JSON, writes a run with its steps into SQLite in group commits and
// answers after the flush. It has no authentication, no rules and no engine. The
// benchmark holds the product against it: what the machine allows.
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
		unit := write{id: "run_" + strconv.FormatInt(count.Add(1), 36), payload: string(body.Payload), done: make(chan error, 1)}
		queue <- unit
		if err := <-unit.done; err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"id": unit.id, "status": "succeeded"})
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

// commitGroups accepts and finishes runs: two commits for each, as the product
// needs them, shared by whatever queued meanwhile.
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
		for _, unit := range group {
			unit.done <- err
		}
	}
}

func acceptAll(conn *sqlite.Conn, group []write) error {
	for _, unit := range group {
		if err := exec(conn, "INSERT INTO runs VALUES (?, 'running', ?)", unit.id, unit.payload); err != nil {
			return err
		}
	}
	return nil
}

func finishAll(conn *sqlite.Conn, group []write) error {
	for _, unit := range group {
		for _, path := range []string{"a", "b", "c"} {
			if err := exec(conn, "INSERT INTO steps VALUES (?, ?, ?)", unit.id, path, `{"ok":true}`); err != nil {
				return err
			}
		}
		if err := exec(conn, "UPDATE runs SET status = 'succeeded' WHERE id = ?", unit.id); err != nil {
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
