package postgres

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

type row struct {
	types  *pgtype.Map
	fields []pgconn.FieldDescription
	values [][]byte
}

// Scan implements store.Row.
func (r row) Scan(dest ...any) error {
	if len(dest) != len(r.values) {
		return fmt.Errorf("%d columns are read into %d values", len(r.values), len(dest))
	}
	for i, d := range dest {
		if r.values[i] == nil {
			continue
		}
		if err := r.scanOne(i, d); err != nil {
			return fmt.Errorf("column %s: %w", r.fields[i].Name, err)
		}
	}
	return nil
}

func (r row) scanOne(i int, dest any) error {
	switch d := dest.(type) {
	case *string:
		if r.isText(i) {
			*d = string(r.values[i])
			return nil
		}
	case **string:
		text := string(r.values[i])
		*d = &text
		return nil
	case *[]byte:
		if r.isText(i) || r.fields[i].DataTypeOID == pgtype.ByteaOID && r.fields[i].Format == pgtype.BinaryFormatCode {
			*d = r.values[i] // already a copy
			return nil
		}
	case *int:
		n, err := r.number(i)
		*d = int(n)
		return err
	case *int64:
		n, err := r.number(i)
		*d = n
		return err
	case *time.Time:
		n, err := r.number(i)
		*d = time.UnixMicro(n).UTC()
		return err
	case **time.Time:
		n, err := r.number(i)
		t := time.UnixMicro(n).UTC()
		*d = &t
		return err
	}
	return r.types.Scan(r.fields[i].DataTypeOID, r.fields[i].Format, r.values[i], dest)
}

func (r row) isText(i int) bool { return r.fields[i].DataTypeOID == pgtype.TextOID }

func (r row) number(i int) (n int64, err error) {
	value, binaryFormat := r.values[i], r.fields[i].Format == pgtype.BinaryFormatCode
	switch {
	case binaryFormat && r.fields[i].DataTypeOID == pgtype.Int8OID:
		return int64(binary.BigEndian.Uint64(value)), nil
	case binaryFormat && r.fields[i].DataTypeOID == pgtype.Int4OID:
		return int64(int32(binary.BigEndian.Uint32(value))), nil
	}
	err = r.types.Scan(r.fields[i].DataTypeOID, r.fields[i].Format, value, &n)
	return n, err
}
