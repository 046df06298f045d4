package database

import (
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Collect returns a query that appends its rows to a slice.
func Collect[T any](rows *[]T, statement string, args []any, scan func(Row) (T, error)) Query {
	*rows = []T{}
	return Query{statement, args, func(r Row) error {
		item, err := scan(r)
		*rows = append(*rows, item)
		return err
	}}
}

// List returns the rows of a query.
func List[T any](c Conn, statement string, args []any, scan func(Row) (T, error)) ([]T, error) {
	var rows []T
	q := Collect(&rows, statement, args, scan)
	err := c.Query(q.Statement, q.Args, q.Each)
	return rows, err
}

// One returns the first row of a query, or nil.
func One[T any](c Conn, statement string, args []any, scan func(Row) (T, error)) (*T, error) {
	rows, err := List(c, statement, args, scan)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// Number returns the only column of the only row of a query.
func Number(c Conn, statement string, args ...any) (int, error) {
	n := 0
	err := c.Query(statement, args, func(r Row) error { return r.Scan(&n) })
	return n, err
}

// NotIn adds a condition that excludes the given values. Their number is rounded
// up to a power of two by repeating the last one, which keeps the number of
// distinct prepared statements small.
func NotIn(statement, column string, values []string, args []any) (string, []any) {
	if len(values) == 0 {
		return statement, args
	}
	placeholders := make([]string, 1<<bits.Len(uint(len(values)-1)))
	for i := range placeholders {
		args = append(args, values[min(i, len(values)-1)])
		placeholders[i] = `$` + strconv.Itoa(len(args))
	}
	return statement + ` AND ` + column + ` NOT IN (` + strings.Join(placeholders, `, `) + `)`, args
}

// Placeholders returns the parameters of a list in a statement, from a number on.
func Placeholders(from, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = "$" + strconv.Itoa(from+i)
	}
	return strings.Join(list, ", ")
}

// OrNil stores "" as NULL.
func OrNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// BytesOrNil stores absent bytes as NULL.
func BytesOrNil(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// TimeOrNil stores an absent time as NULL.
func TimeOrNil(t *time.Time) any {
	if t == nil {
		return nil
	}
	return *t
}
