package webhook

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
)

// brokenFiles is a storage that creates no files and counts those that are discarded.
type brokenFiles struct {
	Files
	err       error
	discarded int
}

func (f *brokenFiles) Create(context.Context, file.Owner, string, string) (*file.Writer, error) {
	return nil, f.err
}

func (f *brokenFiles) Discard(_ context.Context, files ...file.File) { f.discarded += len(files) }

// failingRuns are runs that do not start.
type failingRuns struct {
	trigger.Runs
	err error
}

func (r failingRuns) Fire(context.Context, run.Firing) (run.Started, error) {
	return run.Started{}, r.err
}

// The bytes of a run that may have been started are kept.
func TestFilesOfACallWhoseRunMayHaveStarted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err       error
		discarded int
	}{
		"rejected":                   {fault.New(fault.PlanLimitExceeded, "too many runs"), 1},
		"the workflow has gone":      {run.ErrNotDue, 1},
		"the storage is full":        {fault.New(fault.StorageFull, "no"), 1},
		"a duplicate":                {&run.DuplicateError{RunID: "run_1"}, 1},
		"the connection was lost":    {fault.New(fault.Unavailable, "it is not known whether the change was saved"), 0},
		"another error of the store": {errors.New("unexpected"), 0},
	} {
		files := &brokenFiles{}
		hooks := &Hooks{runs: failingRuns{err: test.err}, inbox: trigger.NewInbox(nil), files: files}
		hook := Hook{Trigger: trigger.Trigger{Active: true}, config: &Config{}}
		_, _ = hooks.Accept(t.Context(), hook, Call{Upload: &Upload{Payload: []byte(`{}`), Files: []file.File{{}}}})
		if files.discarded != test.discarded {
			t.Errorf("%s: %d files were discarded", name, files.discarded)
		}
	}
}

// A sender does not repeat a call that it believes to be malformed.
func TestStorageErrorsAreNotBlamedOnTheForm(t *testing.T) {
	t.Parallel()
	broken := errors.New("the storage is broken")
	hooks := &Hooks{files: &brokenFiles{err: broken}}
	const form = "--B\r\nContent-Disposition: form-data; name=a; filename=b\r\n\r\nc\r\n--B--\r\n"
	for _, media := range []string{"multipart/form-data; boundary=B", "image/png"} {
		_, err := hooks.Receive(t.Context(), Hook{}, http.Header{"Content-Type": {media}}, strings.NewReader(form), func(int64) error { return nil })
		if !errors.Is(err, broken) {
			t.Errorf("%s: %v", media, err)
		}
	}
}
