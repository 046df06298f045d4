package itemlist_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/actiontest"
	"github.com/stepmill/stepmill/internal/action/itemlist"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/mask"
)

// state is the state of an action that reads a list.
type state struct {
	Count int             `json:"count"`
	Files []itemlist.File `json:"files,omitempty"`
}

// step calls an action the way the engine does: each call gets the last checkpoint.
type step struct {
	t     *testing.T
	req   action.Request
	files *actiontest.Files
	state state
	last  action.Checkpoint
}

func newStep(t *testing.T, maxOutput int) *step {
	t.Helper()
	s := &step{t: t, files: actiontest.NewFiles()}
	s.req = action.Request{Files: s.files, MaxOutput: maxOutput, Mask: func(output map[string]any) (map[string]any, error) { return output, nil }}
	return s
}

// hide masks what a path selects.
func (s *step) hide(path string) {
	parsed, err := mask.ParsePath(path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.req.Mask = func(output map[string]any) (map[string]any, error) {
		masked, _ := mask.Hide(output, []mask.Path{parsed}).(map[string]any)
		return masked, nil
	}
}

func (s *step) open() *itemlist.List {
	s.t.Helper()
	s.state = state{}
	if s.req.State != nil {
		if err := json.Unmarshal(s.req.State, &s.state); err != nil {
			s.t.Fatal(err)
		}
	}
	return itemlist.Open(s.req.Chunks, s.state.Files)
}

// checkpoint ends a call with a checkpoint.
func (s *step) checkpoint(l *itemlist.List) error {
	s.t.Helper()
	result, err := l.Checkpoint(s.t.Context(), s.req, func(files []itemlist.File) any {
		s.state.Files = files
		return s.state
	})
	if err != nil {
		return err
	}
	s.last = *result.Checkpoint
	return s.req.Resume(s.last)
}

// add reads a page in a call of its own.
func (s *step) add(items ...any) {
	s.t.Helper()
	l := s.open()
	if err := l.Add(items); err != nil {
		s.t.Fatal(err)
	}
	s.state.Count += len(items)
	if err := s.checkpoint(l); err != nil {
		s.t.Fatal(err)
	}
}

func TestSmallListStaysInTheState(t *testing.T) {
	t.Parallel()
	s := newStep(t, 1000)
	s.add(1, "two")
	s.add()
	s.add(map[string]any{"three": 3})
	l := s.open()
	if err := l.Add([]any{4}); err != nil { // of the last page, which has no checkpoint
		t.Fatal(err)
	}
	items, err := l.Items(t.Context(), s.req)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any([]any{1, "two", map[string]any{"three": 3}, 4}), items); diff != "" {
		t.Error(diff)
	}
	if l.HasFiles() || len(s.files.Content) > 0 || s.state.Count != 3 {
		t.Errorf("%d files, state %+v", len(s.files.Content), s.state)
	}
	// The format is stored in databases.
	want := [][]byte{[]byte("\n[1,\"two\"]"), []byte("\n"), []byte("\n[{\"three\":3}]")}
	if diff := cmp.Diff(want, s.req.Chunks); diff != "" {
		t.Errorf("the chunks differ:\n%s", diff)
	}
}

func TestEmptyList(t *testing.T) {
	t.Parallel()
	items, err := itemlist.Open(nil, nil).Items(t.Context(), action.Request{})
	if diff := cmp.Diff(any([]any{}), items); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestLargeListIsWrittenToFiles(t *testing.T) {
	t.Parallel()
	s := newStep(t, 1000)
	s.hide("items.token")
	const pages = 20
	var want strings.Builder
	for n := range pages {
		s.add(map[string]any{"n": n, "text": strings.Repeat("x", 100), "token": "s3cr3t"})
		fmt.Fprintf(&want, `{"n":%d,"text":%q,"token":"***"}`+"\n", n, strings.Repeat("x", 100))
		if len(s.last.Files) != len(s.state.Files) {
			t.Errorf("the checkpoint holds %d files of %d", len(s.last.Files), len(s.state.Files))
		}
		size := 0
		for _, c := range s.req.Chunks {
			size += len(c)
		}
		if size > s.req.MaxOutput/2 {
			t.Errorf("after page %d the chunks have %d bytes", n+1, size)
		}
	}
	parts := len(s.state.Files)
	l := s.open()
	if !l.HasFiles() || parts < 2 || s.state.Count != pages {
		t.Fatalf("the state is %+v", s.state)
	}
	value, err := l.Items(t.Context(), s.req)
	if err != nil {
		t.Fatal(err)
	}
	file, ok := value.(*expr.File)
	if !ok || file.List == nil || file.List.Count != pages || len(file.List.First) != pages || file.Name != "items.ndjson" {
		t.Fatalf("got %+v", value)
	}
	if diff := cmp.Diff(want.String(), string(s.files.Content[file.ID])); diff != "" {
		t.Error(diff)
	}
	if len(s.files.Content) != parts+1 || s.files.Unclosed != 0 || s.files.Aborted != 0 {
		t.Errorf("%d files beside %d parts, %d open, %d aborted", len(s.files.Content), parts, s.files.Unclosed, s.files.Aborted)
	}
	for id, content := range s.files.Content {
		if strings.Contains(string(content), "s3cr3t") {
			t.Errorf("%s has a masked value", id)
		}
	}
}

// Without files, and in a trial, whose files are not recorded, everything stays in the
// state, however large it gets.
func TestWithoutFiles(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*action.Request){
		"no files":   func(r *action.Request) { r.Files = nil },
		"a trial":    func(r *action.Request) { r.Run.Trial = true },
		"no maximum": func(r *action.Request) { r.MaxOutput = 0 },
	} {
		s := newStep(t, 10)
		change(&s.req)
		s.add(strings.Repeat("x", 100))
		if l := s.open(); l.HasFiles() || len(s.files.Content) > 0 {
			t.Errorf("%s: items are in files", name)
		}
	}
}

func TestMaskOfTheWholeList(t *testing.T) {
	t.Parallel()
	s := newStep(t, 10)
	s.hide("items")
	l := s.open()
	if err := l.Add([]any{strings.Repeat("x", 100)}); err != nil {
		t.Fatal(err)
	}
	err := s.checkpoint(l)
	if failure, ok := errors.AsType[*action.Failure](err); !ok || failure.Code != action.OutputTooLarge || s.files.Aborted != 1 {
		t.Errorf("got %v", err)
	}
}

// Positions are found again after any number of checkpoints, also after items were
// written to a file.
func TestRepeatedPosition(t *testing.T) {
	t.Parallel()
	for _, maxOutput := range []int{0, 50} {
		s := newStep(t, maxOutput)
		const pages = 30
		for n := range pages {
			l := s.open()
			if err := l.Add([]any{n, n, n}); err != nil {
				t.Fatal(err)
			}
			if page, repeated := l.Seen([]byte("cursor " + strconv.Itoa(n))); repeated {
				t.Fatalf("page %d has the position of page %d", n+1, page)
			}
			if err := s.checkpoint(l); err != nil {
				t.Fatal(err)
			}
		}
		if l := s.open(); l.HasFiles() != (maxOutput > 0) {
			t.Errorf("limit %d: has files: %t", maxOutput, l.HasFiles())
		}
		for n := range pages {
			if page, repeated := s.open().Seen([]byte("cursor " + strconv.Itoa(n))); !repeated || page != n+1 {
				t.Errorf("limit %d: the position of page %d is that of page %d, repeated %t", maxOutput, n+1, page, repeated)
			}
		}
	}
}

// Items and positions of a state without chunks become the first chunk.
func TestAdopt(t *testing.T) {
	t.Parallel()
	s := newStep(t, 0)
	seen := itemlist.Open(nil, nil)
	seen.Seen([]byte("a"))
	result, err := seen.Checkpoint(t.Context(), action.Request{}, func([]itemlist.File) any { return nil })
	if err != nil {
		t.Fatal(err)
	}
	hashes, _, _ := strings.Cut(string(result.Checkpoint.Chunk), "\n")

	l := s.open()
	l.Adopt(hashes, json.RawMessage(`[1, 2]`))
	if err := l.Add([]any{3}); err != nil {
		t.Fatal(err)
	}
	if _, repeated := l.Seen([]byte("b")); repeated {
		t.Error("a new position is repeated")
	}
	if err := s.checkpoint(l); err != nil {
		t.Fatal(err)
	}
	if !s.last.Restart || len(s.req.Chunks) != 1 {
		t.Errorf("%d chunks, restart %t", len(s.req.Chunks), s.last.Restart)
	}
	items, err := s.open().Items(t.Context(), s.req)
	if diff := cmp.Diff(any([]any{1, 2, 3}), items); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for position, want := range map[string]int{"a": 1, "b": 2} {
		if page, repeated := s.open().Seen([]byte(position)); !repeated || page != want {
			t.Errorf("%s is the position of page %d, want %d", position, page, want)
		}
	}
}
