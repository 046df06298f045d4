package store

import (
	"errors"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
)

// maxScanned bounds how many rows one page scans, because matches may be rare among millions of
// rows. The page then ends where the scan stopped, and its cursor goes on from there.
const maxScanned = 5000

// errEnough stops a query once the page is full.
var errEnough = errors.New("enough rows")

// scanPage reads a page of the rows that scan accepts. The statement returns them
// in key order and stops at maxScanned rows.
func scanPage[T any](c database.Conn, statement string, args []any, limit int, key func(T) string, scan func(database.Row) (T, bool, error)) (paging.Page[T], error) {
	found := paging.Page[T]{Items: []T{}}
	scanned, last := 0, ""
	err := c.Query(statement, args, func(r database.Row) error {
		item, wanted, err := scan(r)
		if err != nil {
			return err
		}
		if scanned, last = scanned+1, key(item); !wanted {
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
	if scanned == maxScanned {
		found.Next = last
	}
	return found, err
}
