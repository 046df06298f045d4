package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/run"
)

// Files stores the bytes of the files that steps create and reads those of others.
type Files interface {
	// Create begins a file within the limits of the plan.
	Create(ctx context.Context, o file.Owner, name, mediaType string) (*file.Writer, error)
	// Open reads at most length bytes of a file from an offset on.
	Open(ctx context.Context, workspaceID, id string, offset, length int64) (io.ReadCloser, error)
	// Discard deletes the bytes of files that are certainly not recorded.
	Discard(ctx context.Context, files ...file.File)
	// Keep records a file that nothing refers to, so that it is kept like an upload.
	Keep(ctx context.Context, o file.Owner, f file.File) error
}

// callFiles are the files of one call of an action. They implement [action.Files].
type callFiles struct {
	files Files
	owner file.Owner

	mu      sync.Mutex
	over    bool // the call has ended, or was abandoned
	created []file.File
}

// errCallOver is returned to an action that uses files after its call was abandoned.
var errCallOver = errors.New("the call of the action is over")

// Create implements action.Files.
func (c *callFiles) Create(ctx context.Context, f action.NewFile) (action.FileWriter, error) {
	if c.isOver() {
		return nil, errCallOver
	}
	w, err := c.files.Create(ctx, c.owner, f.Name, f.Type)
	if err != nil {
		return nil, fileFailure(err)
	}
	return &callFile{of: c, w: w, list: f.List}, nil
}

// Open implements action.Files.
func (c *callFiles) Open(ctx context.Context, f *expr.File, offset int64) (io.ReadCloser, error) {
	r, err := c.files.Open(ctx, c.owner.WorkspaceID, f.ID, offset, f.Size-offset)
	return r, fileFailure(err)
}

func (c *callFiles) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// end ends the call and returns the files that it has created. Files that are not
// finished can no longer be.
func (c *callFiles) end() []file.File {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	created := c.created
	c.over, c.created = true, nil
	return created
}

// drop ends the call, if there is one, and discards the files that it has created.
func (c *callFiles) drop() {
	if created := c.end(); len(created) > 0 {
		discard(c.files, created)
	}
}

// callFile is a file that an action writes.
type callFile struct {
	of   *callFiles
	w    *file.Writer
	list *expr.FileList
}

// Write implements action.FileWriter.
func (f *callFile) Write(p []byte) (int, error) {
	if f.of.isOver() {
		return 0, errCallOver
	}
	n, err := f.w.Write(p)
	return n, fileFailure(err)
}

// Finish implements action.FileWriter.
func (f *callFile) Finish() (*expr.File, error) {
	finished, err := f.w.Finish()
	if err != nil {
		return nil, fileFailure(err)
	}
	finished.List = f.list
	f.of.mu.Lock()
	over := f.of.over
	if !over {
		f.of.created = append(f.of.created, finished)
	}
	f.of.mu.Unlock()
	if over {
		discard(f.of.files, []file.File{finished})
		return nil, errCallOver
	}
	return finished.Value(), nil
}

// Abort implements action.FileWriter.
func (f *callFile) Abort() { f.w.Abort() }

// fileFailure returns a fault as a failure of the step. That the storage is full or does
// not respond may pass.
func fileFailure(err error) error {
	if because, ok := errors.AsType[*fault.Error](err); ok {
		return &action.Failure{Code: string(because.Code), Message: because.Message, Retryable: because.Code.Status() >= http.StatusInternalServerError}
	}
	return err
}

// newCallFiles returns the files for a call of an action.
func (d *driver) newCallFiles() *callFiles {
	if d.engine.files == nil {
		return nil
	}
	return &callFiles{files: d.engine.files, owner: d.fileOwner()}
}

// fileOwner returns the run as the owner of files.
func (d *driver) fileOwner() file.Owner {
	return file.Owner{WorkspaceID: d.state.snap.WorkspaceID, Plan: d.state.snap.Plan, RunID: d.state.snap.ID}
}

// fileMember is how the JSON of a reference begins with its member, wherever it is.
var fileMember = []byte(`"` + expr.FileKey + `"`)

// inputHasFiles reports whether the stored input of a step may refer to files. They are
// not stored as references: the input is rendered again.
func (d *driver) inputHasFiles(step *run.Step) bool {
	return d.state.files && d.secrets.inputs[step] == nil && bytes.Contains(step.Input, fileMember)
}

// filesIn returns the JSON pointers of the files inside a value. Values of runs without
// files are not searched.
func (s *runState) filesIn(value any) []string {
	if !s.files {
		return nil
	}
	return expr.FilePointers(value)
}

// refer notes the files that a value refers to, so that the next commit records those
// that were just created and makes the run hold the others.
func (s *runState) refer(value any) {
	if s.files {
		s.hold(expr.Files(value))
	}
}

// hold makes the run hold files from the next commit on.
func (s *runState) hold(files []*expr.File) {
	for _, f := range files {
		if s.held == nil {
			s.held = map[string]bool{}
		}
		created, isNew := s.created[f.ID]
		switch {
		case isNew:
			delete(s.created, f.ID)
			s.changes.files = append(s.changes.files, created)
		case !s.held[f.ID]:
			s.changes.holds = append(s.changes.holds, f.ID)
		}
		s.held[f.ID] = true
	}
}

// release makes the run no longer hold files that the state of a step had, and that it
// does not have any more.
func (s *runState) release(files []string, step *run.Step) {
	for _, id := range files {
		if !slices.Contains(step.StateFiles, id) {
			delete(s.held, id)
			s.changes.releases = append(s.changes.releases, id)
		}
	}
}

// offer makes the files that a call has created available to its output.
func (s *runState) offer(created []file.File) {
	for _, f := range created {
		s.files = true
		if s.created == nil {
			s.created = map[string]file.File{}
		}
		s.created[f.ID] = f
	}
}

// unused returns the files that no output refers to.
func (s *runState) unused() []file.File {
	var unused []file.File
	for id, f := range s.created {
		unused = append(unused, f)
		delete(s.created, id)
	}
	return unused
}

// settleFiles settles the files of a decision. If the decision was not committed, they
// are deleted, but only if that is certain: otherwise they may have been recorded.
func (d *driver) settleFiles(files []file.File, lost bool) {
	if lost {
		discard(d.engine.files, files)
	}
}

// discard deletes the bytes of files that are certainly not recorded.
func discard(from Files, files []file.File) {
	if len(files) > 0 {
		from.Discard(context.Background(), files...)
	}
}

// keepFiles keeps the files that a step test has created for as long as uploads, so
// that its result can be looked at.
func (d *driver) keepFiles(ctx context.Context) error {
	defer d.dropFiles() // those after an error
	for len(d.changes.files) > 0 {
		f := d.changes.files[0]
		d.changes.files = d.changes.files[1:]
		if err := d.engine.files.Keep(ctx, d.fileOwner(), f); err != nil {
			return err
		}
	}
	return nil
}

// dropFiles discards the files of changes that are not committed.
func (d *driver) dropFiles() {
	discard(d.engine.files, d.changes.files)
	d.changes.files = nil
}
