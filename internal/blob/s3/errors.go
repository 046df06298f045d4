package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/fault"
)

// explain turns the error of a request into one of package blob or a fault. It
// distinguishes what a retry may fix from what only the operator can.
func explain(operation string, err error) error {
	if err == nil {
		return nil
	}
	status, code := describe(err)
	switch code {
	case "NoSuchKey":
		return fmt.Errorf("%s: %w", operation, blob.ErrNotFound)
	case "NoSuchUpload":
		return fmt.Errorf("%s: %w", operation, blob.ErrFinished)
	case "NoSuchBucket":
		return fmt.Errorf("%s: %w: there is no such bucket", operation, blob.ErrDenied)
	case "EntityTooLarge":
		return fmt.Errorf("%s: %w", operation, blob.ErrTooLarge)
	case "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "InsufficientCapacity":
		return full(err)
	case "SlowDown", "RequestTimeout", "OperationAborted", "Throttling":
		return unavailable(err)
	}
	switch {
	case status == http.StatusNotFound:
		return fmt.Errorf("%s: %w", operation, blob.ErrNotFound)
	case status == http.StatusInsufficientStorage:
		return full(err)
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= 500:
		return unavailable(err)
	case status >= 300:
		return fmt.Errorf("%s: %w: %w", operation, blob.ErrDenied, err)
	case errors.Is(err, context.Canceled):
		return err // by the caller; our own timeouts are deadlines
	}
	return unavailable(err) // there was no response
}

// describe returns the status of a response and the code of the error in it, as far
// as there are any.
func describe(err error) (status int, code string) {
	if response, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		status = response.HTTPStatusCode()
	}
	var named interface{ ErrorCode() string }
	if errors.As(err, &named) {
		code = named.ErrorCode()
	}
	return status, code
}

// isPastEnd reports whether a range begins at or after the end of the object.
func isPastEnd(err error) bool {
	status, code := describe(err)
	return status == http.StatusRequestedRangeNotSatisfiable || code == "InvalidRange"
}

func ignoreNotFound(err error) error {
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrFinished) {
		return nil
	}
	return err
}

func unavailable(err error) error {
	return fault.New(fault.Unavailable, "the file storage is not responding; try again").Because(err).After(time.Second)
}

func full(err error) error {
	return fault.New(fault.StorageFull, "the file storage is full; the file was not stored").Because(err)
}
