package upgrade_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/postgres"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// TestNodesOf020 checks the upgrade from nodes that know no levels, under load: while one of
// them is alive, a newer node migrates nothing and does not start. Once all are dead, newer
// nodes finish everything that was acknowledged, also if they are killed, and the old ones
// cannot come back.
func TestNodesOf020(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	old := build(t, "0.2.0")
	dir, url := t.TempDir(), postgres.Shared(t).NewDatabase(t)
	if err := harness.WriteMasterKey(filepath.Join(dir, keyFile)); err != nil {
		t.Fatal(err)
	}
	node := func(name, binary string) harness.Options {
		args := []string{"--node-name", name, "--node-lease=3s", "--egress-allow=127.0.0.0/8"}
		return harness.Options{Dir: dir, Database: url, Binary: binary, Args: args}
	}
	first := harness.StartWith(t, node("old-1", old))
	first.Key = first.AwaitKey(t)
	key := first.Key
	second := harness.StartWith(t, node("old-2", old))
	calls := sink.New(t)
	work := flow.Define(t, first.Client, flow.HTTP("one", calls.URL+"/one?ms=20"), flow.Wait("wait", "1500ms"), flow.HTTP("two", calls.URL+"/two?ms=20"))
	acknowledged := startRuns(t, first.With(key), second.With(key), work, 100)

	refused := func() {
		t.Helper()
		newer := harness.StartProcess(t, node("new", ""))
		if exit := newer.Wait(t); exit.Code == 0 || !strings.Contains(newer.Log(), "still runs Stepmill 0.2.0") {
			t.Errorf("a newer node beside one of 0.2.0: exit %d\n%s", exit.Code, newer.Log())
		}
	}
	refused()
	first.Kill(t)
	refused()
	db := tables.OpenPostgres(t, url)
	if n := tables.Number(t, db, `SELECT max(version_id) FROM schema_versions`); n != 3 {
		t.Errorf("the schema is %d", n)
	}
	acknowledged = append(acknowledged, startRuns(t, second.With(key), second.With(key), work, 100)...)
	second.Kill(t)
	harness.Eventually(t, "the leases of the old nodes expire", func() bool {
		return tables.Number(t, db, `SELECT count(*) FROM nodes WHERE NOT dead AND expires_at > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`) == 0
	})

	a, b := harness.StartWith(t, node("new-1", "")), harness.StartWith(t, node("new-2", ""))
	acknowledged = append(acknowledged, startRuns(t, a.With(key), b.With(key), work, 100)...)
	a.Kill(t)
	back := harness.StartProcess(t, node("old-1", old))
	if exit := back.Wait(t); exit.Code == 0 {
		t.Error("a node of 0.2.0 starts on the new schema")
	}
	client := b.With(key)
	for _, id := range acknowledged {
		fixture{}.awaitEnd(t, client, id, "succeeded")
		if n := len(calls.CallsOf(id)); n < 2 {
			t.Errorf("run %s made %d calls", id, n)
		}
	}
}

// startRuns starts runs through two nodes and returns their ids.
func startRuns(t *testing.T, a, b *harness.Client, workflow string, count int) []string {
	t.Helper()
	ids := make([]string, count)
	var starts sync.WaitGroup
	for i := range count {
		starts.Go(func() {
			client := a
			if i%2 == 1 {
				client = b
			}
			response, err := client.DoUntilAvailable(t.Context(), http.MethodPost, "/v1/workflows/"+workflow+"/runs", map[string]any{}, "Idempotency-Key", fmt.Sprintf("%p-%d", ids, i))
			if err != nil || response.Status != http.StatusCreated {
				t.Errorf("start: %d %s %v", response.Status, response.Body, err)
				return
			}
			var run runBody
			response.Decode(t, &run)
			ids[i] = run.ID
		})
	}
	starts.Wait()
	return ids
}
