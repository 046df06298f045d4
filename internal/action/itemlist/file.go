package itemlist

import (
	"context"
	"errors"
	"io"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/listfile"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// File refers to a file with the items of some pages, in the format of a list file. The
// state of the step contains it.
type File struct {
	ID   string `json:"id"`
	Size int64  `json:"size"`
}

func (f File) file() *expr.File {
	return expr.NewFile(expr.File{ID: f.ID, Size: f.Size, Type: listfile.Type})
}

// spill writes the items of the chunks to a file. What remains of the chunks is one with
// their hashes.
func (l *List) spill(ctx context.Context, req action.Request) error {
	f, err := writeList(ctx, req, action.NewFile{Name: "items.part.ndjson", Type: listfile.Type}, func(w *listfile.Writer) error {
		return l.writeItems(req, w)
	})
	if err != nil {
		return err
	}
	l.files = append(l.files, File{ID: f.ID, Size: f.Size})
	var seen []byte
	for _, c := range l.chunks {
		seen = append(seen, c.seen...)
	}
	l.chunks, l.restart = []chunk{{seen: seen}}, true
	return nil
}

func (l *List) join(ctx context.Context, req action.Request) (*expr.File, error) {
	return writeList(ctx, req, action.NewFile{Name: "items.ndjson", Type: listfile.Type, List: &expr.FileList{}}, func(w *listfile.Writer) error {
		for _, p := range l.files {
			if err := p.copy(ctx, req, w); err != nil {
				return err
			}
		}
		return l.writeItems(req, w)
	})
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

// writeItems writes the items of the chunks, without what must not be stored.
func (l *List) writeItems(req action.Request, w *listfile.Writer) error {
	items, err := l.inMemory()
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

func (f File) copy(ctx context.Context, req action.Request, to *listfile.Writer) error {
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
