package httprequest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/itemlist"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// progress is the state of a step after a page: how much it has read and where the next
// page is. What it has read is in the chunks of the state, one for each page.
type progress struct {
	Pages int `json:"pages"`
	// Cursor, Offset and URL locate the next page, depending on the style.
	Cursor json.RawMessage `json:"cursor,omitempty"`
	Offset int             `json:"offset,omitempty"`
	URL    string          `json:"url,omitempty"`
	// Files have the items before those of the chunks. End is set after the last page.
	Files []itemlist.File `json:"files,omitempty"`
	End   *end            `json:"end,omitempty"`
	// Items and Seen are what earlier releases had in place of chunks.
	Items json.RawMessage `json:"items,omitempty"`
	Seen  string          `json:"seen,omitempty"`

	list *itemlist.List
}

// end is what the output has beside the items.
type end struct {
	More    bool           `json:"more"`
	Status  int            `json:"status"`
	Headers map[string]any `json:"headers"`
}

// newProgress returns the progress of a step after its last checkpoint.
func newProgress(req action.Request, start int) (progress, error) {
	at := progress{Offset: start}
	if req.State != nil {
		if err := json.Unmarshal(req.State, &at); err != nil {
			return at, err
		}
	}
	at.list = itemlist.Open(req.Chunks, at.Files)
	if at.Items != nil {
		at.list.Adopt(at.Seen, at.Items)
		at.Items, at.Seen = nil, ""
	}
	return at, nil
}

// checkpoint returns the state before the next page.
func (at progress) checkpoint(ctx context.Context, req action.Request) (action.Result, error) {
	return at.list.Checkpoint(ctx, req, func(files []itemlist.File) any {
		at.Files = files
		return at
	})
}

// finish returns the output after the last page.
func (at progress) finish(ctx context.Context, req action.Request) (action.Result, error) {
	items, err := at.list.Items(ctx, req)
	if err != nil {
		return action.Result{}, err
	}
	return action.Result{Output: map[string]any{"items": items, "pages": at.Pages, "more": at.End.More, "status": at.End.Status, "headers": at.End.Headers}}, nil
}

// setCursor makes the cursor the position of the next page.
func (at *progress) setCursor(cursor any) error {
	if _, err := transfer.Scalar(cursor); err != nil {
		return paginationFailure("next: the cursor " + err.Error())
	}
	encoded, err := strictjson.Encode(cursor)
	if err != nil {
		return err
	}
	at.Cursor = encoded
	return at.see("cursor", encoded)
}

// setURL makes a URL of a response the next page. It must be on the host of the
// step, because the request carries the headers of the step.
func (at *progress) setURL(requested, answered string, next any) error {
	text, ok := next.(string)
	if !ok {
		return paginationFailure("next: the URL of the next page is not a string")
	}
	from, err := url.Parse(requested)
	if err != nil {
		return err
	}
	base, err := url.Parse(answered)
	if err != nil {
		return err
	}
	to, err := base.Parse(text)
	switch {
	case err != nil:
		return paginationFailure("the URL of the next page is not valid")
	case !egress.SameHost(from, to):
		return paginationFailure(fmt.Sprintf("the next page is on %s, but the step calls %s: its headers, which may contain credentials, are not sent to another host", to.Host, from.Host))
	case from.Scheme == "https" && to.Scheme != "https":
		return paginationFailure("the URL of the next page changes from https to " + to.Scheme)
	}
	at.URL = to.String()
	return at.see("URL", []byte(at.URL))
}

// see records a cursor or URL. It fails if an earlier page already had it.
func (at *progress) see(kind string, position []byte) error {
	if page, repeated := at.list.Seen(position); repeated {
		return paginationFailure(fmt.Sprintf("page %d has the same %s of the next page as page %d: the pages would repeat without end", at.Pages, kind, page))
	}
	return nil
}
