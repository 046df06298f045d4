package crash_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// list1000 serves a list of 1,000 pages by cursor. A step requests a page only after
// the page before it is durable, so each request must be for the page after the last
// one, or for the last one again if its result was lost in a death.
type list1000 struct {
	*httptest.Server
	pad      string // makes each item larger
	mu       sync.Mutex
	held     int // gets no response, so that a server can be killed during its request
	last     int // the last page requested, from 0
	repeated []int
	wrong    []string
}

const listPages = 1000

func newList1000(t *testing.T) *list1000 {
	l := &list1000{held: -1, last: -1}
	l.Server = httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(l.Close)
	return l
}

func (l *list1000) serve(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	l.mu.Lock()
	switch n {
	case l.last + 1:
		l.last = n
	case l.last:
		l.repeated = append(l.repeated, n)
	default:
		l.wrong = append(l.wrong, fmt.Sprintf("page %d after page %d", n, l.last))
	}
	held := n == l.held
	l.mu.Unlock()
	if held {
		<-r.Context().Done()
		return
	}
	next := strconv.Itoa(n + 1)
	if n == listPages-1 {
		next = "null"
	}
	w.Header().Set("Content-Type", "application/json")
	if l.pad != "" {
		fmt.Fprintf(w, `{"items": [{"n": %d, "pad": %q}, {"n": %d}], "next": %s}`, 2*n, l.pad, 2*n+1, next)
		return
	}
	fmt.Fprintf(w, `{"items": [%d, %d], "next": %s}`, 2*n, 2*n+1, next)
}

// lastPage returns the last page requested.
func (l *list1000) lastPage() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// hold sets the page that gets no response.
func (l *list1000) hold(page int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = page
}

// killAtHeldPage kills a server that requests the held page.
func (l *list1000) killAtHeldPage(t *testing.T, s *harness.Server) {
	t.Helper()
	harness.Eventually(t, "the held page is requested", func() bool { return l.lastPage() == l.held })
	s.Kill(t)
	l.hold(-1)
}

// A step reads 1,000 pages while its server dies four times. No page is lost, and none
// is requested again after its checkpoint.
func TestPagesAfterCrashes(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	list := newList1000(t)
	s := harness.Start(t, t.TempDir(), egress)
	id := flow.Define(t, s.Client, flow.Step("read", "http.request", fmt.Sprintf(
		`{"url": %q, "paginate": {"style": "cursor", "items": "body.items", "next": "body.next", "max_pages": %d}}`, list.URL, listPages)))
	list.hold(200)
	started := startRun(t, s.Client, id, 1)
	list.killAtHeldPage(t, s)
	awaitDeath(t, startDoomed(t, s.Dir, "after_effect:kill:#200"))
	lost := list.lastPage()
	awaitDeath(t, startDoomed(t, s.Dir, "after_checkpoint:kill:#200"))
	list.hold(800)
	s = restart(t, s, egress)
	list.killAtHeldPage(t, s)
	s = restart(t, s, egress)

	if end := awaitEnd(t, s.Client, started.ID); end.Status != succeeded {
		t.Fatalf("the run is %s: %+v", end.Status, end.Error)
	}
	var ended struct {
		Steps []struct {
			Output struct {
				Items []int
				Pages int
				More  bool
			}
		}
	}
	s.Expect(t, http.StatusOK, "GET", "/v1/runs/"+started.ID, nil).Decode(t, &ended)
	output := ended.Steps[0].Output
	if output.Pages != listPages || output.More || len(output.Items) != 2*listPages {
		t.Errorf("%d items of %d pages, more %t", len(output.Items), output.Pages, output.More)
	}
	for i, item := range output.Items {
		if item != i {
			t.Fatalf("INVARIANT: item %d is %d: a page was lost, repeated or exchanged", i, item)
		}
	}
	if list.wrong != nil {
		t.Errorf("INVARIANT: pages were requested again after their checkpoint: %v", list.wrong)
	}
	found := map[int]int{}
	for _, page := range list.repeated {
		found[page]++
	}
	if found[lost] == 0 || len(found) > 4 {
		t.Errorf("the pages %v were requested twice, want %d, whose result was lost, and at most one for each other death", list.repeated, lost)
	}
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}

// A list of 5 MB becomes a list file while the server dies, and a loop reads its items
// while the server dies again. No item is lost or repeated, and no file remains but the
// list file.
func TestListFileAfterCrashes(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	list := newList1000(t)
	list.pad = strings.Repeat("x", 5000)
	s := harness.Start(t, t.TempDir(), egress)
	id := flow.Define(t, s.Client,
		flow.Step("read", "http.request", fmt.Sprintf(
			`{"url": %q, "paginate": {"style": "cursor", "items": "body.items", "next": "body.next", "max_pages": %d}}`, list.URL, listPages)),
		map[string]any{"id": "each", "foreach": "steps.read.output.items", "parallel": 20, "steps": []any{
			flow.Step("one", "data.set", `{"values": {"n": "${{ item.n }}"}}`),
		}})
	list.hold(300)
	started := startRun(t, s.Client, id, 1)
	list.killAtHeldPage(t, s)
	list.hold(listPages - 1)
	s = restart(t, s, egress)
	list.killAtHeldPage(t, s)
	awaitDeath(t, startDoomed(t, s.Dir, "after_checkpoint:kill:#3"))
	awaitDeath(t, startDoomed(t, s.Dir, "after_checkpoint:kill:#2"))
	s = restart(t, s, egress)

	if end := awaitEnd(t, s.Client, started.ID); end.Status != succeeded {
		t.Fatalf("the run is %s: %+v", end.Status, end.Error)
	}
	var ended struct {
		Steps []struct {
			StepID string `json:"step_id"`
			Output struct{ Items json.RawMessage }
		}
	}
	s.Expect(t, http.StatusOK, "GET", "/v1/runs/"+started.ID, nil).Decode(t, &ended)
	for _, step := range ended.Steps {
		var (
			file  struct{ Count int }
			items []struct{ N int }
		)
		switch step.StepID {
		case "read":
			if err := json.Unmarshal(step.Output.Items, &file); err != nil || file.Count != 2*listPages {
				t.Errorf("the list file has %d items: %v", file.Count, err)
			}
		case "each":
			if err := json.Unmarshal(step.Output.Items, &items); err != nil || len(items) != 2*listPages {
				t.Errorf("%d rounds: %v", len(items), err)
			}
			for i, item := range items {
				if item.N != i {
					t.Fatalf("INVARIANT: item %d is %d", i, item.N)
				}
			}
		}
	}
	if list.wrong != nil {
		t.Errorf("INVARIANT: pages were requested again after their checkpoint: %v", list.wrong)
	}
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}
