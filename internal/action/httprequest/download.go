package httprequest

import (
	"context"
	"fmt"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
)

// download sends a request and stores the body of its response as a file. The body of a
// response whose status is not one of success remains a value.
func download(ctx context.Context, client transfer.Client, call egress.Request, req action.Request) (action.Result, error) {
	if req.Files == nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: "with/response: files can only be created by steps of a workflow"}
	}
	file, resp, err := transfer.Download(ctx, client, call, req.Files, "")
	if err != nil {
		return action.Result{}, err
	}
	if file != nil {
		return action.Result{Output: map[string]any{"status": resp.Status, "headers": transfer.Headers(resp.Header), "body": file}}, nil
	}
	if err := checkStatus(resp, call, req); err != nil {
		return action.Result{}, err
	}
	if resp.Truncated {
		return action.Result{}, &action.Failure{Code: string(egress.ResponseTooLarge), Message: fmt.Sprintf("the response has the status %d, so it is not stored as a file, and is longer than %d bytes", resp.Status, len(resp.Body))}
	}
	return action.Result{Output: output(resp)}, nil
}
