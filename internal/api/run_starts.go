package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/txn"
)

// runStarts responds to requests that start a run, which can wait for its end.
type runStarts struct{ runs *run.Service }

// preparedStart is a run to start, and how long the response waits for its end.
type preparedStart struct {
	*run.Prepared
	wait      time.Duration
	wantsWait bool
}

// commit starts a prepared run and responds with it.
func (h runStarts) commit(ctx context.Context, tx txn.Tx, p preparedStart) (*transport.Reply, error) {
	started, committed, err := h.runs.In(tx).Commit(ctx, p.Prepared)
	if err != nil {
		return nil, err
	}
	if !committed {
		return nil, transport.ErrStale
	}
	return h.reply(started, p.wait, p.wantsWait), nil
}

// reply responds with a started run, immediately or when it has ended.
func (h runStarts) reply(started run.Started, wait time.Duration, wantsWait bool) *transport.Reply {
	response := transport.OK(showRun(started.Detail)).WithHeader("Location", "/v1/runs/"+started.ID)
	if wantsWait {
		response.AfterCommit = func(ctx context.Context, connection *http.ResponseController) (*transport.Reply, error) {
			return h.await(ctx, connection, started, wait)
		}
	}
	return response
}

// await responds with the finished run, or with the running one when the wait
// times out.
func (h runStarts) await(ctx context.Context, connection *http.ResponseController, started run.Started, wait time.Duration) (*transport.Reply, error) {
	// The write timeout starts after the wait. A connection without deadline
	// support has no timeout to extend.
	_ = connection.SetWriteDeadline(clock.Monotonic().Add(wait + time.Minute))
	detail, err := h.runs.Await(ctx, transport.Actor(ctx), started, wait)
	if err != nil {
		return nil, err
	}
	response := transport.OK(showRun(detail)).WithHeader("Location", "/v1/runs/"+started.ID).
		WithHeader("Preference-Applied", "wait="+strconv.Itoa(int(wait.Seconds())))
	if detail.Status != run.Running {
		response.Status = http.StatusOK
	}
	return response, nil
}

const maxWaitSeconds = 60

// preferredWait finds wait=N in a Prefer header. It ignores preferences it does
// not understand, as RFC 7240 requires.
func preferredWait(header string) (time.Duration, bool) {
	for preference := range strings.FieldsFuncSeq(header, func(r rune) bool { return r == ',' || r == ';' }) {
		name, value, found := strings.Cut(strings.TrimSpace(preference), "=")
		if !found || !strings.EqualFold(strings.TrimSpace(name), "wait") {
			continue
		}
		n, err := strconv.Atoi(strings.Trim(strings.TrimSpace(value), `"`))
		if err != nil || n < 1 {
			return 0, false
		}
		return time.Duration(min(n, maxWaitSeconds)) * time.Second, true
	}
	return 0, false
}
