package api

import (
	"context"
	"strings"

	"github.com/stepmill/stepmill/internal/paging"
)

// page is the part of a list request that every list has.
type page struct {
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor"`
}

type listBody[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// listing reads one page. The list is named by what it shows and how it is
// filtered: a cursor opens only in the list it came from.
func listing[T, W any](ctx context.Context, s *Server, p page, name []string,
	read func(paging.Request) (paging.Page[T], error), show func(T) W,
) (*reply, error) {
	body, err := pageOf(ctx, s, p, name, read, show)
	if err != nil {
		return nil, err
	}
	return ok(body), nil
}

// pageOf is listing for an answer that says more than the list.
func pageOf[T, W any](ctx context.Context, s *Server, p page, name []string,
	read func(paging.Request) (paging.Page[T], error), show func(T) W,
) (listBody[W], error) {
	scope := actorOf(ctx).Workspace.ID + "|" + strings.Join(name, "|")
	request := paging.Request{Limit: paging.DefaultLimit}
	if p.Limit != nil {
		request.Limit = *p.Limit
	}
	if request.Limit < 1 || request.Limit > paging.MaxLimit {
		return listBody[W]{}, parameter("limit", "must be between 1 and %d", paging.MaxLimit)
	}
	if p.Cursor != "" {
		position, err := s.Cursors.Open(p.Cursor, scope)
		if err != nil {
			return listBody[W]{}, err
		}
		request.After = position
	}
	found, err := read(request)
	if err != nil {
		return listBody[W]{}, err
	}
	body := listBody[W]{Data: make([]W, len(found.Items))}
	for i, item := range found.Items {
		body.Data[i] = show(item)
	}
	if found.Next != "" {
		cursor := s.Cursors.Seal(found.Next, scope)
		body.NextCursor = &cursor
	}
	return body, nil
}

// orNull shows an empty text as null.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
