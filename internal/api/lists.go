package api

import (
	"context"
	"strings"

	"github.com/stepmill/stepmill/internal/paging"
)

// page holds the parameters that every list request has.
type page struct {
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor"`
}

type listBody[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// paginate responds with one page of a list. The name identifies the list and its
// filters: a cursor is only valid in the list it came from.
func paginate[T, W any](ctx context.Context, s *Server, p page, name []string,
	read func(paging.Request) (paging.Page[T], error), show func(T) W,
) (*reply, error) {
	body, err := paginatedBody(ctx, s, p, name, read, show)
	if err != nil {
		return nil, err
	}
	return ok(body), nil
}

// paginatedBody is like paginate, for responses that hold more than the list.
func paginatedBody[T, W any](ctx context.Context, s *Server, p page, name []string,
	read func(paging.Request) (paging.Page[T], error), show func(T) W,
) (listBody[W], error) {
	scope := actorOf(ctx).Workspace.ID + "|" + strings.Join(name, "|")
	limit, err := limitOf(p.Limit)
	if err != nil {
		return listBody[W]{}, err
	}
	request := paging.Request{Limit: limit}
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
	body := listBody[W]{Data: showAll(found.Items, show)}
	if found.Next != "" {
		cursor := s.Cursors.Seal(found.Next, scope)
		body.NextCursor = &cursor
	}
	return body, nil
}

// limitOf returns the page size of a request.
func limitOf(given *int) (int, error) {
	return numberOf("limit", given, paging.DefaultLimit, paging.MaxLimit)
}

// numberOf returns an optional number of a query, which is at least 1.
func numberOf(name string, given *int, standard, most int) (int, error) {
	if given == nil {
		return standard, nil
	}
	if *given < 1 || *given > most {
		return 0, parameter(name, "must be between 1 and %d", most)
	}
	return *given, nil
}

// showAll converts each item of a list. It never returns nil.
func showAll[T, W any](items []T, show func(T) W) []W {
	out := make([]W, len(items))
	for i, item := range items {
		out[i] = show(item)
	}
	return out
}

// orNull returns nil for an empty string.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
