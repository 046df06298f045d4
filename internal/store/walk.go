package store

import (
	"errors"

	"github.com/stepmill/stepmill/internal/paging"
)

// maxLooked bounds how many rows one page looks at. What a filter leaves may be
// rare among millions; the page then ends where looking ended.
const maxLooked = 5000

// errEnough ends a query whose further rows are not needed.
var errEnough = errors.New("enough rows")

// walk reads a page of the rows that scan wants. The statement has them in the
// order of their keys and stops at maxLooked rows.
func walk[T any](c Conn, statement string, args []any, limit int, key func(T) string, scan func(Row) (T, bool, error)) (paging.Page[T], error) {
	found := paging.Page[T]{Items: []T{}}
	looked, last := 0, ""
	err := c.Query(statement, args, func(r Row) error {
		item, wanted, err := scan(r)
		if err != nil {
			return err
		}
		if looked, last = looked+1, key(item); !wanted {
			return nil
		}
		if len(found.Items) == limit {
			found.Next = key(found.Items[limit-1])
			return errEnough
		}
		found.Items = append(found.Items, item)
		return nil
	})
	if errors.Is(err, errEnough) {
		return found, nil
	}
	if looked == maxLooked {
		found.Next = last
	}
	return found, err
}
