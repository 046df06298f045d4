// Package s3 stores blobs as objects of an S3-compatible bucket, for installations
// with several nodes. The key of an object is a prefix and the id of the blob.
//
// A blob is uploaded in parts of 5 MiB, so it has at most 48 GiB: buckets accept
// 10,000 parts. An upload holds one part in memory, a reader the buffers of its
// connection. A blob of less than one part is a single request.
//
// The bucket is infrastructure that the operator configures, like the database. So
// its requests do not go through internal/egress, which keeps the steps of tenants
// away from private addresses: a bucket may well be on one.
package s3

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/txn"
)

// Store is a bucket of blobs. It implements blob.Store.
type Store struct {
	client  *s3.Client
	bucket  string
	prefix  string
	timings Timings
}

// Timings bound the requests. Zero values mean the defaults; tests shorten them.
type Timings struct {
	// Request bounds a request and its retries, except for the body of a response.
	// The default is 2 minutes.
	Request time.Duration
	// Stall bounds the wait for the headers of a response, and for the next bytes of
	// its body. The default is 30 seconds.
	Stall time.Duration
	// Backoff is the longest pause between two attempts. The default is 5 seconds.
	Backoff time.Duration
}

// attempts is how often a request is sent if the bucket is unavailable, and how
// often a read is resumed at the same position.
const attempts = 5

// New returns a store. It sends no request.
func New(c Config, t Timings) *Store {
	if t.Request == 0 {
		t.Request = 2 * time.Minute
	}
	if t.Stall == 0 {
		t.Stall = 30 * time.Second
	}
	if t.Backoff == 0 {
		t.Backoff = 5 * time.Second
	}
	credentials := aws.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken}
	options := s3.Options{
		Region:      c.Region,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return credentials, nil }),
		HTTPClient:  newHTTPClient(t),
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = attempts, t.Backoff
		}),
		// Other servers than AWS know neither the checksums that AWS has added since
		// nor the header Expect. Every segment of a blob is authenticated anyway.
		RequestChecksumCalculation:   aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation:   aws.ResponseChecksumValidationWhenRequired,
		ContinueHeaderThresholdBytes: -1,
	}
	if c.Endpoint != "" {
		options.BaseEndpoint, options.UsePathStyle = aws.String(c.Endpoint), true
	}
	return &Store{client: s3.New(options), bucket: c.Bucket, prefix: c.Prefix, timings: t}
}

func newHTTPClient(t Timings) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: t.Stall,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConns:          64,
		MaxIdleConnsPerHost:   64,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true,
	}}
}

func (s *Store) key(id blob.ID) *string { return aws.String(s.prefix + string(id)) }

// idOf returns the id of the blob with a key. Other objects of the bucket have none.
func (s *Store) idOf(key *string) (blob.ID, bool) {
	name, ok := strings.CutPrefix(aws.ToString(key), s.prefix)
	id := blob.ID(name)
	return id, ok && id.Check() == nil
}

// Begin implements blob.Store. It sends no request, so it does not notice that an
// id is in use.
func (s *Store) Begin(ctx context.Context, id blob.ID) (blob.Upload, error) {
	if err := blob.Ready(ctx, id); err != nil {
		return nil, err
	}
	return &upload{store: s, ctx: ctx, key: s.key(id)}, nil
}

// Open implements blob.Store.
func (s *Store) Open(ctx context.Context, id blob.ID, offset, length int64) (io.ReadCloser, error) {
	if err := blob.Ready(ctx, id); err != nil {
		return nil, err
	}
	r := &reader{store: s, ctx: ctx, key: s.key(id), offset: offset, rest: length}
	open := r.open
	if length == 0 { // a range has at least one byte
		open = func() error { return s.head(ctx, r.key) }
	}
	if err := open(); err != nil {
		return nil, err
	}
	return r, nil
}

func (s *Store) head(ctx context.Context, key *string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timings.Request)
	defer cancel()
	_, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: key})
	return explain("open a blob", err)
}

// Delete implements blob.Store.
func (s *Store) Delete(ctx context.Context, id blob.ID) error {
	if err := blob.Ready(ctx, id); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timings.Request)
	defer cancel()
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: s.key(id)})
	return ignoreNotFound(explain("delete a blob", err))
}

// List implements blob.Store. Objects that are no blobs are skipped, so the prefix
// should have none.
func (s *Store) List(ctx context.Context, page paging.Request) (paging.Page[blob.Info], error) {
	txn.MustBeOutside(ctx)
	limit, after := blob.PageLimit(page), s.prefix+page.After
	var found []blob.Info
	for more := true; more && len(found) <= limit; {
		objects, err := s.listObjects(ctx, after, limit+1)
		if err != nil {
			return paging.Page[blob.Info]{}, err
		}
		for _, object := range objects.Contents {
			after = aws.ToString(object.Key)
			if id, ok := s.idOf(object.Key); ok {
				found = append(found, blob.Info{ID: id, Size: aws.ToInt64(object.Size), Created: aws.ToTime(object.LastModified).UTC()})
			}
		}
		more = aws.ToBool(objects.IsTruncated) && len(objects.Contents) > 0
	}
	return paging.Cut(found, limit, func(i blob.Info) string { return string(i.ID) }), nil
}

func (s *Store) listObjects(ctx context.Context, after string, limit int) (*s3.ListObjectsV2Output, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timings.Request)
	defer cancel()
	objects, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket: &s.bucket, Prefix: &s.prefix, StartAfter: &after, MaxKeys: aws.Int32(int32(limit)),
	})
	if err != nil {
		return nil, explain("list the blobs", err)
	}
	return objects, nil
}

// Sweep implements blob.Store.
func (s *Store) Sweep(ctx context.Context, before time.Time) (removed int, err error) {
	txn.MustBeOutside(ctx)
	in := &s3.ListMultipartUploadsInput{Bucket: &s.bucket, Prefix: &s.prefix}
	for {
		uploads, err := s.listUploads(ctx, in)
		if err != nil {
			return removed, err
		}
		for _, u := range uploads.Uploads {
			if _, ok := s.idOf(u.Key); !ok || !aws.ToTime(u.Initiated).Before(before) {
				continue
			}
			if err := s.abort(ctx, u.Key, u.UploadId); err != nil {
				return removed, err
			}
			removed++
		}
		if !aws.ToBool(uploads.IsTruncated) {
			return removed, nil
		}
		in.KeyMarker, in.UploadIdMarker = uploads.NextKeyMarker, uploads.NextUploadIdMarker
	}
}

func (s *Store) listUploads(ctx context.Context, in *s3.ListMultipartUploadsInput) (*s3.ListMultipartUploadsOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timings.Request)
	defer cancel()
	uploads, err := s.client.ListMultipartUploads(ctx, in)
	if err != nil {
		return nil, explain("list the uploads", err)
	}
	return uploads, nil
}

// abort aborts a multipart upload. It is no error if there is none.
func (s *Store) abort(ctx context.Context, key, uploadID *string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timings.Request)
	defer cancel()
	_, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: key, UploadId: uploadID})
	return ignoreNotFound(explain("abort an upload", err))
}

// rangeHeader returns the header Range for a number of bytes from an offset on. A
// range that contains the end of every blob is left open.
func rangeHeader(offset, length int64) string {
	if length > maxParts*partSize {
		return fmt.Sprintf("bytes=%d-", offset)
	}
	return fmt.Sprintf("bytes=%d-%d", offset, offset+length-1)
}
