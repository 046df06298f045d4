package httprequest

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/listfile"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Items that would make the state of a step too large are written to files. After the
// last page these are joined to a list file. The whole list is never in memory.

// itemFile is a file with items of some pages, in the format of a list file.
type itemFile struct {
	ID   string `json:"id"`
	Size int64  `json:"size"`
}

// file returns a reference to the file.
func (f itemFile) file() *expr.File {
	return expr.NewFile(expr.File{ID: f.ID, Size: f.Size, Type: listfile.Type})
}

// end is what the output has beside the items.
type end struct {
	More    bool           `json:"more"`
	Status  int            `json:"status"`
	Headers map[string]any `json:"headers"`
}

// checkpoint returns the state before the next page.
func (at progress) checkpoint(ctx context.Context, req action.Request) (action.Result, error) {
	// The files of a trial are not recorded between its calls, so they could not be read.
	if req.Files != nil && !req.Run.Trial && req.MaxOutput > 0 && at.size() > req.MaxOutput/2 {
		if err := at.spill(ctx, req); err != nil {
			return action.Result{}, err
		}
	}
	files := make([]*expr.File, len(at.Files))
	for i, f := range at.Files {
		files[i] = f.file()
	}
	return action.Result{Checkpoint: &action.Checkpoint{State: at, Chunk: at.page().encode(), Restart: at.restart, Files: files}}, nil
}

// size returns the size of the items that are not in files.
func (at progress) size() int {
	size := 0
	for _, c := range at.chunks {
		size += len(c.items)
	}
	return size
}

// items returns the items that are not in files.
func (at progress) items() (any, error) {
	var lists []json.RawMessage
	for _, c := range at.chunks {
		lists = append(lists, c.items)
	}
	return expr.FromJSON(joinItems(lists...))
}

// finish returns the output after the last page. If there are files, they are joined by
// another call, so that the last page need not be requested again if that fails.
func (at progress) finish(ctx context.Context, req action.Request, e end) (action.Result, error) {
	if len(at.Files) > 0 {
		at.End = &e
		return at.checkpoint(ctx, req)
	}
	items, err := at.items()
	if err != nil {
		return action.Result{}, err
	}
	return action.Result{Output: e.output(items, at.Pages)}, nil
}

func (e end) output(items any, pages int) map[string]any {
	return map[string]any{"items": items, "pages": pages, "more": e.More, "status": e.Status, "headers": e.Headers}
}

// spill writes the items of the state to a file. What remains of the chunks is one with
// their hashes.
func (at *progress) spill(ctx context.Context, req action.Request) error {
	f, err := writeList(ctx, req, action.NewFile{Name: "items.part.ndjson", Type: listfile.Type}, func(w *listfile.Writer) error {
		return at.writeItems(req, w)
	})
	if err != nil {
		return err
	}
	at.Files = append(at.Files, itemFile{ID: f.ID, Size: f.Size})
	var seen []byte
	for _, c := range at.chunks {
		seen = append(seen, c.seen...)
	}
	at.chunks, at.restart = []chunk{{seen: seen}}, true
	return nil
}

// join writes the list file and returns the output.
func (at progress) join(ctx context.Context, req action.Request) (action.Result, error) {
	f, err := writeList(ctx, req, action.NewFile{Name: "items.ndjson", Type: listfile.Type, List: &expr.FileList{}}, func(w *listfile.Writer) error {
		for _, p := range at.Files {
			if err := p.copy(ctx, req, w); err != nil {
				return err
			}
		}
		return at.writeItems(req, w)
	})
	if err != nil {
		return action.Result{}, err
	}
	return action.Result{Output: at.End.output(f, at.Pages)}, nil
}

// writeList writes a file with items. A list file has a description.
func writeList(ctx context.Context, req action.Request, f action.NewFile, write func(*listfile.Writer) error) (*expr.File, error) {
	to, err := req.Files.Create(ctx, f)
	if err != nil {
		return nil, err
	}
	defer to.Abort()
	list := f.List
	if list == nil {
		list = &expr.FileList{}
	}
	w := listfile.NewWriter(to, list)
	if err := write(w); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	return to.Finish()
}

// writeItems writes the items of the state, without what must not be stored.
func (at progress) writeItems(req action.Request, w *listfile.Writer) error {
	items, err := at.items()
	if err != nil {
		return err
	}
	masked, err := req.Mask(map[string]any{"items": items})
	if err != nil {
		return err
	}
	list, ok := masked["items"].([]any)
	if !ok {
		return &action.Failure{Code: action.OutputTooLarge, Message: "the items of all pages are too large for one output, and they cannot become a list file because the mask of the step selects the whole list"}
	}
	for _, item := range list {
		encoded, err := strictjson.Encode(item)
		if err != nil {
			return err
		}
		if err := w.Add(encoded); err != nil {
			return err
		}
	}
	return nil
}

// copy adds the items of the file to a list file.
func (f itemFile) copy(ctx context.Context, req action.Request, to *listfile.Writer) error {
	from, err := req.Files.Open(ctx, f.file(), 0)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	r := listfile.NewReader(from)
	for {
		item, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := to.Add(item); err != nil {
			return err
		}
	}
}
