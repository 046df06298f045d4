package api

import (
	"context"
	"encoding/csv"
	"io"
	"net/http"

	"github.com/stepmill/stepmill/internal/table"
)

const mediaCSV = "text/csv"

type importRowsRequest struct {
	ID   string `path:"id"`
	Body []byte `body:"csv"`
}

type importBody struct {
	Created int `json:"created"`
	Updated int `json:"updated"`
}

// importRows reads the file before the transaction that writes its rows.
func (s *Server) importRows(ctx context.Context, in *importRowsRequest) (commit, error) {
	rows, err := s.Tables.PrepareImport(ctx, actorOf(ctx), in.ID, in.Body)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*reply, error) {
		done, err := s.Tables.Import(ctx, actorOf(ctx), in.ID, rows)
		if err != nil {
			return nil, err
		}
		return ok(importBody{done.Created, done.Updated}), nil
	}, nil
}

func (s *Server) exportRows(ctx context.Context, in *tableRequest) (*reply, error) {
	actor := actorOf(ctx)
	t, err := s.Tables.Get(ctx, actor, in.ID)
	if err != nil {
		return nil, err
	}
	response := &reply{download: func(w io.Writer) error {
		out := csv.NewWriter(w)
		if err := out.Write(t.CSVHeader()); err != nil {
			return err
		}
		err := s.Tables.Export(ctx, actor, t, func(r table.Row) error { return out.Write(t.CSVFields(r)) })
		out.Flush()
		if err == nil {
			err = out.Error()
		}
		return err
	}}
	return response.withHeader("Content-Type", mediaCSV+"; charset=utf-8").
		withHeader("Content-Disposition", `attachment; filename="`+t.Name+`.csv"`), nil
}

// download writes a body of unknown length. If it fails in the middle, the connection
// is closed, so that the client does not take a part for the whole.
func (s *Server) download(w http.ResponseWriter, r *http.Request, e *endpoint, response *reply) {
	for name, value := range response.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(response.statusOr(e.Status))
	if r.Method == http.MethodHead {
		return
	}
	if err := response.download(newPatientWriter(w)); err != nil {
		if r.Context().Err() == nil {
			s.Log.Warn("a download ended early", "request_id", callerOf(r.Context()).requestID, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
}
