package s3

import (
	"bytes"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/stepmill/stepmill/internal/blob"
)

const (
	partSize = 5 << 20 // the smallest that buckets accept
	maxParts = 10_000
	// smallSize is up to which size the buffer grows step by step. Then it gets the
	// size of a part at once.
	smallSize = 256 << 10
)

// upload collects the bytes of a part and uploads it when the next one begins. The
// multipart upload begins with the first part that is full.
type upload struct {
	store *Store
	ctx   context.Context
	key   *string
	id    *string // of the multipart upload, once it has begun
	part  []byte
	parts []types.CompletedPart
	done  bool
	err   error // of a Write
}

// Write implements blob.Upload.
func (u *upload) Write(p []byte) (written int, err error) {
	if err := u.usable(); err != nil {
		return 0, err
	}
	for len(p) > 0 {
		if len(u.part) == partSize {
			if u.err = u.flush(); u.err != nil {
				return written, u.err
			}
		}
		n := min(len(p), partSize-len(u.part))
		if len(u.part)+n > smallSize {
			u.part = slices.Grow(u.part, partSize-len(u.part))
		}
		u.part = append(u.part, p[:n]...)
		written += n
		p = p[n:]
	}
	return written, nil
}

func (u *upload) usable() error { return blob.Usable(u.ctx, u.done, u.err) }

func (u *upload) flush() error {
	ctx, cancel := context.WithTimeout(u.ctx, u.store.timings.Request)
	defer cancel()
	if u.id == nil {
		made, err := u.store.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &u.store.bucket, Key: u.key})
		if err != nil {
			return explain("begin an upload", err)
		}
		u.id = made.UploadId
	}
	if len(u.parts) == maxParts {
		return blob.ErrTooLarge
	}
	number := aws.Int32(int32(len(u.parts) + 1))
	sent, err := u.store.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &u.store.bucket, Key: u.key, UploadId: u.id, PartNumber: number, Body: bytes.NewReader(u.part),
	})
	if err != nil {
		return explain("write a blob", err)
	}
	u.parts = append(u.parts, types.CompletedPart{ETag: sent.ETag, PartNumber: number})
	u.part = u.part[:0]
	return nil
}

// Commit implements blob.Upload.
func (u *upload) Commit() error {
	if err := u.usable(); err != nil {
		return err
	}
	if u.id == nil {
		u.err = u.put()
	} else {
		u.err = u.complete()
	}
	u.done = u.err == nil
	u.part = nil
	return u.err
}

// put stores a blob of at most one part.
func (u *upload) put() error {
	ctx, cancel := context.WithTimeout(u.ctx, u.store.timings.Request)
	defer cancel()
	_, err := u.store.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &u.store.bucket, Key: u.key, Body: bytes.NewReader(u.part)})
	return explain("commit a blob", err)
}

func (u *upload) complete() error {
	if err := u.flush(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(u.ctx, u.store.timings.Request)
	defer cancel()
	_, err := u.store.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &u.store.bucket, Key: u.key, UploadId: u.id, MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts},
	})
	return explain("commit a blob", err)
}

// Abort implements blob.Upload.
func (u *upload) Abort() error {
	if u.done {
		return nil
	}
	u.done, u.part = true, nil
	if u.id == nil {
		return nil
	}
	return u.store.abort(context.WithoutCancel(u.ctx), u.key, u.id)
}
