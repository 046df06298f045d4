package operation

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/itemlist"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/strictjson"
)

type progress struct {
	// Call is the index of the next call, and Results has those of the earlier ones.
	Call    int            `json:"call"`
	Results map[string]any `json:"-"`
	// Since is when that call could be sent for the first time.
	Since time.Time `json:"since,omitzero"`
	// Pages, Count, Cursor and URL locate the next page of a list, and Part the
	// next part of a batch. Files have items of the list.
	Pages  int             `json:"pages,omitempty"`
	Count  int             `json:"count,omitempty"`
	Cursor json.RawMessage `json:"cursor,omitempty"`
	URL    string          `json:"url,omitempty"`
	Part   int             `json:"part,omitempty"`
	Files  []itemlist.File `json:"files,omitempty"`
	// Sent is how many bytes of a file that is sent in parts the service has.
	Sent int64 `json:"sent,omitempty"`
	// Ended is set after the last page, and More if there would be others.
	Ended bool `json:"ended,omitempty"`
	More  bool `json:"more,omitempty"`
	// Restarts is how often the operation has begun anew.
	Restarts int `json:"restarts,omitempty"`
}

// begun reports whether a part of the call has been made.
func (p progress) begun() bool { return p.Pages > 0 || p.Part > 0 || p.Sent > 0 }

// stored is the state of the step: the progress, and the results with the pointers of
// the files in them.
type stored struct {
	progress
	// Manifest is the digest of a workspace's own manifest that the progress was made with.
	Manifest string          `json:"manifest,omitempty"`
	Results  json.RawMessage `json:"results,omitempty"`
	Held     []string        `json:"held,omitempty"`
}

// readProgress returns the progress at the last checkpoint. If a workspace has changed its
// own manifest since then, what was begun cannot be told from what the calls are now: the
// step must not go on in the middle.
func readProgress(i *integration.Integration, req action.Request) (progress, error) {
	if req.State == nil {
		return progress{Since: req.Began}, nil
	}
	var s stored
	if err := json.Unmarshal(req.State, &s); err != nil {
		return progress{}, err
	}
	if s.Manifest != i.Digest() {
		return progress{}, &action.Failure{Code: OutcomeUnknown, Message: "the integration " + i.ID + " was changed while the step was in progress, and what it has done so far cannot be continued. Look at the service before you retry the run"}
	}
	if s.Results != nil {
		value, err := expr.FromJSONWithFiles(s.Results, s.Held)
		if err != nil {
			return progress{}, err
		}
		s.progress.Results, _ = value.(map[string]any)
	}
	return s.progress, nil
}

// checkpoint records the progress. The operation continues from there.
func (e *execution) checkpoint(ctx context.Context) (action.Result, error) {
	results, err := strictjson.Encode(e.at.Results)
	if err != nil {
		return action.Result{}, err
	}
	if e.at.Results == nil {
		results = nil
	}
	out, err := e.list.Checkpoint(ctx, e.req, func(files []itemlist.File) any {
		e.at.Files = files
		return stored{e.at, e.service.Digest(), results, expr.FilePointers(e.at.Results)}
	})
	if err == nil {
		out.Checkpoint.Files = append(out.Checkpoint.Files, expr.Files(e.at.Results)...)
	}
	return out, err
}
