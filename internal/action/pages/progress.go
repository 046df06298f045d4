package pages

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/itemlist"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Progress is the state of a step after a page: how much it has read and where the next
// page is. What it has read is in the chunks of the state, one for each page.
type Progress struct {
	Pages int `json:"pages"`
	// Cursor, Offset and URL locate the next page, depending on how the action requests it.
	Cursor json.RawMessage `json:"cursor,omitempty"`
	Offset int             `json:"offset,omitempty"`
	URL    string          `json:"url,omitempty"`
	// Files have the items before those of the chunks. End is set after the last page.
	Files []itemlist.File `json:"files,omitempty"`
	End   *End            `json:"end,omitempty"`
	// Items and Seen are what earlier releases had in place of chunks.
	Items json.RawMessage `json:"items,omitempty"`
	Seen  string          `json:"seen,omitempty"`

	list *itemlist.List
}

// End is what the output has beside the items.
type End struct {
	More    bool           `json:"more"`
	Status  int            `json:"status"`
	Headers map[string]any `json:"headers"`
}

// Open returns the progress of a step after its last checkpoint. A step without one starts
// at an offset.
func Open(req action.Request, start int) (*Progress, error) {
	at := &Progress{Offset: start}
	if req.State != nil {
		if err := json.Unmarshal(req.State, at); err != nil {
			return nil, err
		}
	}
	at.list = itemlist.Open(req.Chunks, at.Files)
	if at.Items != nil {
		at.list.Adopt(at.Seen, at.Items)
		at.Items, at.Seen = nil, ""
	}
	return at, nil
}

// SetKey makes the Idempotency-Key of a request that of the page. A receiver that recognizes
// repetitions must not take a page for the one before.
func (at *Progress) SetKey(call *egress.Request) {
	call.Header.Set(transfer.KeyHeader, call.Header.Get(transfer.KeyHeader)+"/"+strconv.Itoa(at.Pages+1))
}

// Position returns the cursor of the page, or nil if it has none.
func (at *Progress) Position() (any, error) {
	if at.Cursor == nil {
		return nil, nil
	}
	return expr.FromJSON(at.Cursor)
}

// Read adds the items of a page to the list and returns their number. The next page may
// need a secret of the response, such as a key in its URL; items must not have one.
func (at *Progress) Read(req action.Request, items *expr.Program, response map[string]any) (count int, err error) {
	masked, _ := req.Secrets.Value(response).(map[string]any)
	list, err := items.EvalList(&expr.Env{Values: masked, Now: req.Now}, expr.Budget{})
	if err != nil {
		return 0, expressionFailure("items", err)
	}
	at.Pages++
	return len(list), at.list.Add(list)
}

// SetCursor makes the cursor the position of the next page.
func (at *Progress) SetCursor(cursor any) error {
	if _, err := transfer.Scalar(cursor); err != nil {
		return Failure("next: the cursor " + err.Error())
	}
	encoded, err := strictjson.Encode(cursor)
	if err != nil {
		return err
	}
	at.Cursor = encoded
	return at.see("cursor", encoded)
}

// SetURL makes the URL the position of the next page.
func (at *Progress) SetURL(next string) error {
	at.URL = next
	return at.see("URL", []byte(next))
}

// see records a cursor or URL. It fails if an earlier page already had it.
func (at *Progress) see(kind string, position []byte) error {
	if page, repeated := at.list.Seen(position); repeated {
		return Failure(fmt.Sprintf("page %d has the same %s of the next page as page %d: the pages would repeat without end", at.Pages, kind, page))
	}
	return nil
}

// Continue returns the result after a page: a checkpoint if another one follows, otherwise
// the output.
func (at *Progress) Continue(ctx context.Context, req action.Request, more bool, maxPages int, resp *egress.Response) (action.Result, error) {
	if more && at.Pages < maxPages {
		return at.checkpoint(ctx, req)
	}
	if more {
		req.Log(action.Warn, fmt.Sprintf("stopped after %d pages, the most that max_pages allows; there are more", at.Pages))
	}
	at.End = &End{More: more, Status: resp.Status, Headers: transfer.Headers(resp.Header)}
	if at.list.HasFiles() {
		return at.checkpoint(ctx, req) // the page need not be requested again if joining the files fails
	}
	return at.Finish(ctx, req)
}

// checkpoint returns the state before the next page.
func (at *Progress) checkpoint(ctx context.Context, req action.Request) (action.Result, error) {
	return at.list.Checkpoint(ctx, req, func(files []itemlist.File) any {
		at.Files = files
		return at
	})
}

// Finish returns the output after the last page.
func (at *Progress) Finish(ctx context.Context, req action.Request) (action.Result, error) {
	items, err := at.list.Items(ctx, req)
	if err != nil {
		return action.Result{}, err
	}
	return action.Result{Output: map[string]any{"items": items, "pages": at.Pages, "more": at.End.More, "status": at.End.Status, "headers": at.End.Headers}}, nil
}
