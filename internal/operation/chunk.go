package operation

import (
	"context"
	"fmt"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
)

type chunk struct {
	file   *expr.File
	offset int64
	length int64
	// data stands for the bytes of the part where a manifest reads chunk.data.
	data *expr.File
}

func (c *chunk) values() any {
	if c == nil {
		return nil
	}
	return map[string]any{"offset": int(c.offset), "end": int(c.offset+c.length) - 1, "total": int(c.file.Size), "data": c.data}
}

// cut replaces what stands for the bytes of the chunk by the range of the file.
func (c *chunk) cut(body transfer.Body) transfer.Body {
	if c == nil {
		return body
	}
	out := make(transfer.Body, len(body))
	for i, s := range body {
		if s.File == c.data {
			s.File, s.Offset, s.Length = c.file, c.offset, c.length
		}
		if s.Body != nil {
			s.Body = c.cut(s.Body)
		}
		out[i] = s
	}
	return out
}

// selectChunk sets the part of the file that is sent next. If an earlier execution may have
// sent it, the service is asked how much it has. If that is everything, its answer is the
// last one of the call.
func (e *execution) selectChunk(ctx context.Context, call *integration.Call) (*answer, error) {
	if call.Chunk == nil {
		return nil, nil
	}
	value, err := e.env(call).Eval(call.Chunk.File)
	if err != nil {
		return nil, expressionFailure("chunk/file", err)
	}
	file, ok := value.(*expr.File)
	if !ok {
		return nil, &action.Failure{Code: action.InvalidInput, Message: "the step needs a file, not another value"}
	}
	e.setChunk(call, file)
	ask := call.Chunk.Ask
	if ask == nil || !e.interrupted && !e.retried {
		return nil, nil
	}
	got, err := e.send(ctx, ask)
	if err != nil {
		return nil, err
	}
	if e.at.Sent, err = e.received(call, got); err != nil {
		return nil, err
	}
	if e.at.Sent >= file.Size {
		return got, nil
	}
	e.setChunk(call, file)
	e.interrupted, e.retried = false, false
	return nil, nil
}

// setChunk sets the part of a file that begins where the service has no more bytes.
func (e *execution) setChunk(call *integration.Call, file *expr.File) {
	c := &chunk{file: file, offset: e.at.Sent, length: min(call.Chunk.Size, file.Size-e.at.Sent)}
	c.data = expr.NewFile(expr.File{ID: file.ID, Name: file.Name, Type: file.Type, Size: c.length})
	e.chunk = c
}

// received returns how many bytes of the file the service has according to an answer.
func (e *execution) received(call *integration.Call, got *answer) (int64, error) {
	if call.Chunk.Next == nil {
		return e.chunk.offset + e.chunk.length, nil
	}
	value, err := e.answerEnv(call, got).Eval(call.Chunk.Next)
	if err != nil {
		return 0, expressionFailure("chunk/next", err)
	}
	n, ok := value.(int)
	if !ok || n < 0 || int64(n) > e.chunk.file.Size {
		return 0, &action.Failure{Code: integration.Failed, Message: fmt.Sprintf("%s does not say which part of the file it expects next", e.service.Name)}
	}
	return int64(n), nil
}

// addChunk continues with the next part of the file, or returns the result of the call after
// the last one.
func (e *execution) addChunk(ctx context.Context, call *integration.Call, got *answer) (outcome, error) {
	received, err := e.received(call, got)
	switch {
	case err != nil:
		return outcome{}, err
	case received >= e.chunk.file.Size:
		value, err := e.valueOf(call, got)
		return outcome{value: value}, err
	case received <= e.at.Sent:
		return outcome{}, &action.Failure{
			Code: integration.Unavailable, Retryable: true,
			Message: fmt.Sprintf("%s has not stored the part of the file that was sent to it", e.service.Name),
		}
	}
	e.at.Sent, e.at.Since = received, e.req.Now
	result, err := e.checkpoint(ctx)
	return outcome{result: &result}, err
}
