package crash_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/tables"
)

// The stored fingerprint of a request body is no hash that somebody with a copy of the
// database could compare guesses with. It stays the same when the master key is rotated,
// and records of earlier releases, which have a plain hash, are still replayed.
func TestFingerprintsOfBodiesAreKeyed(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	dir, key := s.Dir, s.Key
	body := map[string]any{"name": "PIN 1234"}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	plain := sha256.Sum256(text)
	headers := []string{"Idempotency-Key", "order-1"}
	first := s.Expect(t, http.StatusCreated, "POST", "/v1/workflows", body, headers...)
	wantReplay := func(when string) {
		t.Helper()
		again := s.Expect(t, http.StatusCreated, "POST", "/v1/workflows", body, headers...)
		if again.Header.Get("Idempotent-Replayed") != "true" || !bytes.Equal(again.Body, first.Body) {
			t.Errorf("%s: got %s, then %s", when, first.Body, again.Body)
		}
		s.Expect(t, http.StatusUnprocessableEntity, "POST", "/v1/workflows", map[string]any{"name": "PIN 4321"}, headers...)
	}
	wantReplay("at once")
	restartAfter := func(change func()) {
		t.Helper()
		s.Stop(t)
		change()
		s = harness.Start(t, dir)
		s.Client = s.With(key)
	}

	restartAfter(func() {
		for _, stored := range tables.Texts(t, openCopy(t, dir), "SELECT fingerprint FROM idempotency") {
			if bytes.Contains([]byte(stored), plain[:]) {
				t.Error("the database contains the plain hash of the body")
			}
		}
		if r := harness.Run(t, nil, append(harness.DataArgs(t, dir), "master-key", "rotate")...); r.Code != 0 {
			t.Fatalf("%s%s", r.Stdout, r.Stderr)
		}
	})
	wantReplay("after a rotation of the master key")

	restartAfter(func() {
		db := openForWriting(t, dir)
		tables.Exec(t, db, "UPDATE idempotency SET fingerprint = $1", plain[:])
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
	wantReplay("for a record of an earlier release")
	s.Stop(t)
}
