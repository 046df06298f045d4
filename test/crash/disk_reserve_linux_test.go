package crash_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// readiness returns the status of /readyz and what it says, without the id of the request.
func readiness(t *testing.T, c *harness.Client) string {
	t.Helper()
	response, err := c.Do(t.Context(), "GET", "/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Warnings []string
		Error    struct{ Message string }
	}
	if err := json.Unmarshal(response.Body, &body); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %q %s", response.Status, body.Warnings, body.Error.Message)
}

// nothing is what readiness returns if there is nothing to say.
const nothing = "200 [] "

func awaitSaid(t *testing.T, s *harness.Server, text string) string {
	t.Helper()
	said := ""
	harness.Eventually(t, "/readyz says: "+text, func() bool {
		said = readiness(t, s.Client)
		return strings.Contains(said, text)
	})
	return said
}

// crowdedServer is a server on a small disk, with a workflow of each kind that matters.
type crowdedServer struct {
	*harness.Server
	args                     []string
	set, ask, parent         string   // workflows
	hook                     string   // the path of a webhook
	waiting                  []string // runs
	asking, parents, retried string   // the first two of them, and one that was cancelled
	file                     string
}

func startCrowded(t *testing.T, disk smallDisk, args ...string) *crowdedServer {
	t.Helper()
	c := &crowdedServer{Server: harness.Start(t, disk.dir+"/data", args...), args: args}
	approval := flow.Step("ask", "flow.approval", `{"message": "Go on?"}`)
	c.set = flow.Define(t, c.Client, flow.Set("a", 1))
	c.ask = flow.Define(t, c.Client, approval, flow.Set("b", 1))
	c.parent = flow.Define(t, c.Client, approval, flow.Step("child", "flow.run", fmt.Sprintf(`{"workflow_id": %q}`, c.set)))
	called := flow.Define(t, c.Client, flow.Set("a", 1))
	c.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+called, map[string]any{
		"state": "active", "triggers": []any{map[string]any{"id": "call", "type": "webhook"}},
	})
	c.hook = flow.HookPath(t, c.Client, called)
	for n, workflow := range []string{c.ask, c.parent, c.ask, c.ask} {
		c.waiting = append(c.waiting, startRun(t, c.Client, workflow, int64(n)).ID)
	}
	c.asking, c.parents = c.waiting[0], c.waiting[1]
	for _, id := range c.waiting {
		harness.Eventually(t, "the run waits", func() bool {
			return strings.Contains(string(c.Expect(t, http.StatusOK, "GET", "/v1/runs/"+id+"/steps", nil).Body), `"status":"waiting"`)
		})
	}
	c.retried = c.waiting[3]
	c.cancel(t, c.retried)
	response, err := c.Open(t.Context(), "POST", "/v1/files?name=a.txt", strings.NewReader("some bytes"), "Content-Type", "text/plain")
	if err != nil || response.StatusCode != http.StatusCreated {
		t.Fatalf("upload: %v, %v", response, err)
	}
	defer response.Body.Close()
	var made struct{ ID string }
	if err := json.NewDecoder(response.Body).Decode(&made); err != nil {
		t.Fatal(err)
	}
	c.file = made.ID
	return c
}

// restarted kills the server and starts it again, without waiting until it is ready.
func (c *crowdedServer) restarted(t *testing.T) {
	t.Helper()
	key := c.Key
	c.Kill(t)
	c.Server = harness.StartProcess(t, harness.Options{Dir: c.Dir, Args: c.args})
	c.AwaitListening(t)
	c.Key = key
}

// refusesRuns checks that nothing new is accepted.
func (c *crowdedServer) refusesRuns(t *testing.T) {
	t.Helper()
	for _, path := range []string{"/v1/workflows/" + c.set + "/runs", c.hook, "/v1/runs/" + c.retried + "/retry"} {
		response := c.Expect(t, http.StatusInsufficientStorage, "POST", path, map[string]any{})
		if code := flow.ErrorCode(response); code != "storage_full" || !strings.Contains(string(response.Body), "no new runs are accepted; nothing was changed") {
			t.Errorf("POST %s: %s", path, response.Body)
		}
	}
	response, err := c.Open(t.Context(), "POST", "/v1/files?name=b.txt", strings.NewReader("more bytes"), "Content-Type", "text/plain")
	if err != nil || response.StatusCode != http.StatusInsufficientStorage {
		t.Errorf("upload: %v, %v", response, err)
	}
	_ = response.Body.Close()
}

func (c *crowdedServer) approve(t *testing.T, run string) {
	t.Helper()
	c.Expect(t, http.StatusOK, "POST", "/v1/runs/"+run+"/steps/ask/resume", map[string]any{"approved": true})
}

func (c *crowdedServer) cancel(t *testing.T, run string) {
	t.Helper()
	c.Expect(t, http.StatusOK, "POST", "/v1/runs/"+run+"/cancel", nil)
}

// Below the reserve no new runs and uploads are accepted. Runs in flight end, also with the
// runs that they start, runs are cancelled and data is deleted. After a kill it is the same.
func TestDiskReserve(t *testing.T) {
	harness.EmbeddedOnly(t, "the disk of the data directory")
	t.Parallel()
	if !asRoot(t) {
		return
	}
	disk := mountDisk(t, lane.Pick("96m", "1g"))
	reserve := lane.Pick[int64](32, 256) // MiB
	c := startCrowded(t, disk, "--disk-reserve", fmt.Sprint(reserve), "--metrics-listen", "127.0.0.1:0")
	said := readiness(t, c.Client)
	if said != nothing {
		t.Errorf("at first, /readyz says %s", said)
	}
	disk.fill(t, reserve*mib/2)
	said = awaitSaid(t, c.Server, "no new runs and uploads are accepted")
	if !strings.HasPrefix(said, "200 [") {
		t.Errorf("/readyz says %s", said)
	}
	metrics := c.Metrics(t).Expect(t, http.StatusOK, "GET", "/metrics", nil).Body
	if want := `stepmill_warnings{reason="disk_space"} 1`; !strings.Contains(string(metrics), want) {
		t.Errorf("the metrics lack %s", want)
	}
	c.refusesRuns(t)
	result := harness.Run(t, nil, "backup", t.TempDir()+"/backup", "--data-dir", c.Dir)
	if want := fmt.Sprintf("and %d MiB must stay free", reserve); result.Code != 1 || !strings.Contains(result.Stderr, want) {
		t.Errorf("backup: exit code %d: %s", result.Code, result.Stderr)
	}

	c.restarted(t)
	if again := awaitSaid(t, c.Server, "no new runs"); again != said {
		t.Errorf("after the kill, /readyz says %s, before %s", again, said)
	}
	c.refusesRuns(t)
	c.approve(t, c.asking)
	c.approve(t, c.parents)
	for _, id := range []string{c.asking, c.parents} {
		if end := awaitEnd(t, c.Client, id); end.Status != succeeded {
			t.Errorf("a run in flight ended as %s: %+v", end.Status, end.Error)
		}
	}
	c.cancel(t, c.waiting[2])
	c.Expect(t, http.StatusNoContent, "DELETE", "/v1/files/"+c.file, nil)
	c.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+c.parent, map[string]any{"state": "paused"})
	c.Expect(t, http.StatusNoContent, "DELETE", "/v1/workflows/"+c.parent, nil)

	disk.clear(t)
	awaitSaid(t, c.Server, nothing)
	if end := awaitEnd(t, c.Client, startRun(t, c.Client, c.set, 9).ID); end.Status != succeeded {
		t.Errorf("a run after that ended as %s", end.Status)
	}
	c.Stop(t)
	checkTables(t, openCopy(t, c.Dir), "")
}

// On a disk that others have filled, /readyz says the same while it is full and after a
// kill. Reads are served, and everything goes on when there is space.
func TestFullDisk(t *testing.T) {
	harness.EmbeddedOnly(t, "the disk of the data directory")
	t.Parallel()
	if !asRoot(t) {
		return
	}
	disk := mountDisk(t, lane.Pick("64m", "1g"))
	c := startCrowded(t, disk)
	disk.fill(t, 0)
	n := 0
	harness.Eventually(t, "nothing can be changed", func() bool {
		n++
		disk.fill(t, 0)
		response, err := c.Do(t.Context(), "POST", "/v1/workflows", map[string]any{"name": fmt.Sprint("w", n), "description": strings.Repeat("x", 1000)})
		if err != nil || response.Status != http.StatusCreated && response.Status != http.StatusInsufficientStorage {
			t.Fatalf("got %d %s, %v", response.Status, response.Body, err)
		}
		return response.Status == http.StatusInsufficientStorage
	})
	said := awaitSaid(t, c.Server, "no new runs and uploads are accepted")
	c.Expect(t, http.StatusOK, "GET", "/v1/runs/"+c.asking, nil)

	c.restarted(t)
	if again := awaitSaid(t, c.Server, "no new runs"); again != said {
		t.Errorf("after the kill, /readyz says %s, before %s", again, said)
	}
	c.Expect(t, http.StatusOK, "GET", "/v1/runs/"+c.asking, nil)
	c.refusesRuns(t)

	disk.clear(t)
	awaitSaid(t, c.Server, nothing)
	c.approve(t, c.asking)
	if end := awaitEnd(t, c.Client, c.asking); end.Status != succeeded {
		t.Errorf("a run in flight ended as %s: %+v", end.Status, end.Error)
	}
	c.Stop(t)
	checkTables(t, openCopy(t, c.Dir), "")
}
