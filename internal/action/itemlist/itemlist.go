// Package itemlist collects the items of a list that an action reads in pages, with a
// checkpoint after each page. Items are kept in the chunks of the step's state, and in
// files once they are too large for it; the whole list is then never in memory. The
// action reads the pages, and owns the rest of the state.
package itemlist

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
)

// List is what a step has read of a list so far. It does not count the items: if the
// action needs their number, it keeps it in its state.
type List struct {
	files   []File  // have the items before those of the chunks
	chunks  []chunk // the last one is that of the page that is being read
	restart bool    // all chunks are replaced with the last one
}

// Open returns the list as of the last checkpoint: with the chunks of the request, and the
// files that the state of that checkpoint names.
func Open(chunks [][]byte, files []File) *List {
	l := &List{files: files, chunks: make([]chunk, len(chunks)+1)}
	for i, encoded := range chunks {
		l.chunks[i] = decodeChunk(encoded)
	}
	return l
}

// New returns an empty list, in place of one that the state of the step may have.
func New() *List { return &List{chunks: make([]chunk, 1), restart: true} }

// Adopt adds what earlier releases had in the state of a step in place of chunks: hashes of
// positions, and items as a JSON array. It must be called before anything is added.
func (l *List) Adopt(seen string, items json.RawMessage) {
	*l.page(), l.restart = chunk{[]byte(seen), items}, true
}

// page returns the chunk of the page that is being read.
func (l *List) page() *chunk { return &l.chunks[len(l.chunks)-1] }

// Add adds the items of a page.
func (l *List) Add(items []any) error { return l.page().add(items) }

// Seen records the position of the next page, such as its cursor or URL, as that of the
// page that is being read. If an earlier page already had the same, it reports that and
// returns the number of that page, starting at 1, provided that every page has a position.
func (l *List) Seen(position []byte) (page int, repeated bool) {
	hash := hashPosition(position)
	before := 0
	for _, c := range l.chunks {
		if i := c.indexOf(hash); i >= 0 {
			return before + i + 1, true
		}
		before += c.positions()
	}
	l.page().seen = append(l.page().seen, hash...)
	return 0, false
}

// Checkpoint returns the checkpoint before the next page. If the items have become too
// large for the state, it writes them to a file first. The function state is called after
// that, with all files of the list, and returns the state of the step, which must contain
// them.
//
// Items in files are masked as the member items of the output, so the action must return
// the list under that name.
func (l *List) Checkpoint(ctx context.Context, req action.Request, state func(files []File) any) (action.Result, error) {
	// The files of a trial are not recorded between its calls, so they could not be read.
	if req.Files != nil && !req.Run.Trial && req.MaxOutput > 0 && l.size() > req.MaxOutput/2 {
		if err := l.spill(ctx, req); err != nil {
			return action.Result{}, err
		}
	}
	held := make([]*expr.File, len(l.files))
	for i, f := range l.files {
		held[i] = f.file()
	}
	return action.Result{Checkpoint: &action.Checkpoint{State: state(l.files), Chunk: l.page().encode(), Restart: l.restart, Files: held}}, nil
}

// HasFiles reports whether items are in files. [List.Items] then creates a file, and should
// not be called before the last page has a checkpoint: if it fails, the page would have to
// be requested again.
func (l *List) HasFiles() bool { return len(l.files) > 0 }

// Items returns all items: a list, or a list file if some of them are in files.
func (l *List) Items(ctx context.Context, req action.Request) (any, error) {
	if l.HasFiles() {
		return l.join(ctx, req)
	}
	return l.inMemory()
}

// inMemory returns the items that are not in files.
func (l *List) inMemory() (any, error) {
	var lists []json.RawMessage
	for _, c := range l.chunks {
		lists = append(lists, c.items)
	}
	return expr.FromJSON(joinItems(lists...))
}

// size returns the size of the items that are not in files.
func (l *List) size() int {
	size := 0
	for _, c := range l.chunks {
		size += len(c.items)
	}
	return size
}
