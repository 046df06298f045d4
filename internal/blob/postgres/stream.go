package postgres

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/stepmill/stepmill/internal/blob"
)

// upload collects the bytes of a chunk and writes it when it is full.
type upload struct {
	store *Store
	ctx   context.Context
	id    blob.ID
	chunk []byte
	size  int64 // of the chunks that are written
	done  bool
	err   error // of a Write
}

// Write implements blob.Upload.
func (u *upload) Write(p []byte) (written int, err error) {
	if err := u.usable(); err != nil {
		return 0, err
	}
	if int64(len(p)) > MaxSize-u.size-int64(len(u.chunk)) {
		u.err = blob.ErrTooLarge
		return 0, u.err
	}
	for len(p) > 0 {
		n := min(len(p), chunkSize-len(u.chunk))
		u.chunk = append(u.chunk, p[:n]...)
		if len(u.chunk) == chunkSize {
			if u.err = u.flush(); u.err != nil {
				return written, u.err
			}
		}
		written += n
		p = p[n:]
	}
	return written, nil
}

func (u *upload) usable() error { return blob.Usable(u.ctx, u.done, u.err) }

// flush writes a chunk, unless the upload was swept.
func (u *upload) flush() error {
	n, err := u.store.exec(u.ctx, `INSERT INTO blob_chunks (blob_id, number, bytes)
		SELECT id, $2, $3 FROM blobs WHERE id = $1 AND state = 'uploading'`, u.id, u.size/chunkSize, u.chunk)
	if err != nil {
		return explain("write a blob", err)
	}
	if n == 0 {
		return blob.ErrFinished
	}
	u.size += int64(len(u.chunk))
	u.chunk = u.chunk[:0]
	return nil
}

// Commit implements blob.Upload.
func (u *upload) Commit() error {
	if err := u.usable(); err != nil {
		return err
	}
	u.err = u.commit()
	u.done = u.err == nil
	return u.err
}

func (u *upload) commit() error {
	if len(u.chunk) > 0 {
		if err := u.flush(); err != nil {
			return err
		}
	}
	n, err := u.store.exec(u.ctx, `UPDATE blobs SET state = 'stored', size = $2 WHERE id = $1 AND state = 'uploading'`, u.id, u.size)
	if err == nil && n == 0 {
		return blob.ErrFinished
	}
	return explain("commit a blob", err)
}

// Abort implements blob.Upload.
func (u *upload) Abort() error {
	if u.done {
		return nil
	}
	u.done, u.chunk = true, nil
	return explain("abort an upload", u.store.deleteFrom(context.WithoutCancel(u.ctx), u.id, "uploading"))
}

// reader reads a part of a blob, chunk by chunk.
type reader struct {
	store  *Store
	ctx    context.Context
	id     blob.ID
	offset int64  // of the next chunk, or of the first byte within it
	rest   int64  // bytes to read that are not in unread yet
	buffer []byte // has room for a chunk
	unread []byte
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(r.unread) == 0 {
		if r.rest == 0 {
			return 0, io.EOF
		}
		if err := r.fetch(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}

// fetch reads the rest of the chunk that the offset is in, as far as it is wanted.
func (r *reader) fetch() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	from := r.offset % chunkSize
	want := min(r.rest, chunkSize-from)
	if r.buffer == nil {
		r.buffer = make([]byte, min(r.rest, chunkSize))
	}
	chunk := pgtype.PreallocBytes(r.buffer)
	found, err := r.store.queryRow(r.ctx, `SELECT substring(c.bytes FROM $3 FOR $4)
		FROM blobs b JOIN blob_chunks c ON c.blob_id = b.id WHERE b.id = $1 AND b.state = 'stored' AND c.number = $2`,
		[]any{r.id, r.offset / chunkSize, int32(from + 1), int32(want)}, &chunk)
	if err != nil {
		return explain("read a blob", err)
	}
	if !found {
		return blob.ErrNotFound // deleted since
	}
	if int64(len(chunk)) != want {
		return blob.ErrCorrupt
	}
	r.unread, r.offset, r.rest = chunk, r.offset+want, r.rest-want
	return nil
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.rest, r.unread, r.buffer = 0, nil, nil
	return nil
}
