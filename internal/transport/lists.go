package transport

import (
	"context"
	"strings"

	"github.com/stepmill/stepmill/internal/paging"
)

// Page holds the parameters that every list request has.
type Page struct {
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor"`
}

// ListBody is one page of a list.
type ListBody[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// Paginate responds with one page of a list. The name identifies the list and its
// filters: a cursor is only valid in the list it came from.
func Paginate[T, W any](ctx context.Context, cursors *paging.Codec, p Page, name []string,
	read func(paging.Request) (paging.Page[T], error), show func(T) W,
) (*Reply, error) {
	body, err := PaginatedBody(ctx, cursors, p, name, read, show)
	if err != nil {
		return nil, err
	}
	return OK(body), nil
}

// PaginatedBody is like paginate, for responses that hold more than the list.
func PaginatedBody[T, W any](ctx context.Context, cursors *paging.Codec, p Page, name []string,
	read func(paging.Request) (paging.Page[T], error), show func(T) W,
) (ListBody[W], error) {
	scope := Actor(ctx).Workspace.ID + "|" + strings.Join(name, "|")
	limit, err := LimitOf(p.Limit)
	if err != nil {
		return ListBody[W]{}, err
	}
	request := paging.Request{Limit: limit}
	if p.Cursor != "" {
		position, err := cursors.Open(p.Cursor, scope)
		if err != nil {
			return ListBody[W]{}, err
		}
		request.After = position
	}
	found, err := read(request)
	if err != nil {
		return ListBody[W]{}, err
	}
	body := ListBody[W]{Data: make([]W, len(found.Items))}
	for i, item := range found.Items {
		body.Data[i] = show(item)
	}
	if found.Next != "" {
		cursor := cursors.Seal(found.Next, scope)
		body.NextCursor = &cursor
	}
	return body, nil
}

// LimitOf returns the page size of a request.
func LimitOf(given *int) (int, error) {
	return NumberOf("limit", given, paging.DefaultLimit, paging.MaxLimit)
}

// NumberOf returns an optional number of a query, which is at least 1.
func NumberOf(name string, given *int, standard, most int) (int, error) {
	if given == nil {
		return standard, nil
	}
	if *given < 1 || *given > most {
		return 0, Parameter(name, "must be between 1 and %d", most)
	}
	return *given, nil
}
