package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/uid"
)

const newCustomers = `{"name": "$tbl_name", "key": "email", "columns": [{"name": "email", "type": "text"}, {"name": "city", "type": "text", "indexed": true},
	{"name": "amount", "type": "number"}, {"name": "paid", "type": "boolean"}, {"name": "since", "type": "time"}, {"name": "extra", "type": "json"}, {"name": "note", "type": "text"}]}`

// setupTable creates a table with a new name.
func setupTable(w *testWorkspace) {
	w.t.Helper()
	w.names["tbl_name"] = strings.ReplaceAll(uid.New("t"), "_", "-")
	w.create("tbl", "/v1/tables", newCustomers)
}

// addRow adds a row to the table.
func addRow(w *testWorkspace) {
	w.t.Helper()
	w.names["email"] = uid.New("email")
	w.create("row", "/v1/tables/$tbl/rows", `{"values": {"email": "$email", "city": "Bern", "amount": 1.50}}`)
}

func setupRow(w *testWorkspace) {
	w.t.Helper()
	setupTable(w)
	addRow(w)
}

const (
	tableMembers = "id name key columns rows bytes created_at created_by updated_at updated_by"
	rowMembers   = "id values created_at updated_at"
)

func TestTables(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "a table is created", request: "POST /v1/tables", scope: "write", status: 201, members: tableMembers, audit: "table.created",
			body: `{"name": "customers", "key": "email", "columns": [{"name": "email", "type": "text"}, {"name": "city", "type": "text", "indexed": true}]}`,
			contains: `{"name": "customers", "key": "email", "rows": 0, "bytes": 0, "columns": [{"id": "c1", "name": "email", "type": "text", "required": true, "indexed": false},
				{"id": "c2", "name": "city", "type": "text", "required": false, "indexed": true}]}`,
			after: func(w *testWorkspace, a *response) {
				if a.header.Get("Location") != "/v1/tables/"+a.str("id") {
					w.t.Errorf("Location %s", a.header.Get("Location"))
				}
				wantContains(w.t, w.call("GET", "/v1/usage", "").json(), `{"current": {"tables": 1}}`)
			},
		},
		{name: "a table without a key", request: "POST /v1/tables", body: `{"name": "log", "columns": [{"name": "text", "type": "text"}]}`, status: 201, audit: "table.created", contains: `{"key": null}`},
		{name: "a table is read", setup: setupRow, request: "GET /v1/tables/$tbl", scope: "read", status: 200, members: tableMembers, contains: `{"rows": 1}`},
		{name: "tables are listed", setup: setupTable, request: "GET /v1/tables", scope: "read", status: 200, members: "data next_cursor"},
		{
			name: "columns are changed", setup: setupRow, request: "PATCH /v1/tables/$tbl", scope: "write", status: 200, audit: "table.updated",
			body: `{"name": "clients", "columns": {"amount": {"name": "total", "type": "text"}, "city": null, "tags": {"type": "json"}}}`, contains: `{"name": "clients", "rows": 1}`,
			after: func(w *testWorkspace, _ *response) {
				wantContains(w.t, w.call("GET", "/v1/tables/$tbl/rows/$row", "").json(), `{"values": {"total": "1.5", "tags": null}}`)
			},
		},
		{
			name: "a table is deleted", setup: setupRow, request: "DELETE /v1/tables/$tbl", scope: "write", status: 204, audit: "table.deleted",
			after: func(w *testWorkspace, _ *response) {
				w.call("GET", "/v1/tables/$tbl", "").wantStatus(404, "table_not_found")
				w.call("GET", "/v1/tables/$tbl/rows", "").wantStatus(404, "table_not_found")
				wantContains(w.t, w.call("GET", "/v1/usage", "").json(), `{"current": {"tables": 0, "table_rows": 0, "stored_bytes": 0}}`)
			},
		},
		{name: "a name that is taken", setup: setupTable, request: "POST /v1/tables", body: newCustomers, status: 409, code: "table_exists"},
		{name: "a bad name", request: "POST /v1/tables", body: `{"name": "My table", "columns": [{"name": "a", "type": "text"}]}`, status: 400, code: "invalid_request", pointers: []string{"/name"}},
		{name: "no name", request: "POST /v1/tables", body: `{"columns": [{"name": "a", "type": "text"}]}`, status: 400, code: "invalid_request", pointers: []string{"/name"}, lenient: true},
		{name: "no columns", request: "POST /v1/tables", body: `{"name": "a", "columns": []}`, status: 400, code: "invalid_request", pointers: []string{"/columns"}},
		{name: "an unknown type", request: "POST /v1/tables", body: `{"name": "a", "columns": [{"name": "a", "type": "txt"}]}`, status: 400, code: "invalid_request", pointers: []string{"/columns/0/type"}, message: "text"},
		{name: "two columns with one name", request: "POST /v1/tables", body: `{"name": "a", "columns": [{"name": "a", "type": "text"}, {"name": "a", "type": "text"}]}`, status: 400, code: "invalid_request", pointers: []string{"/columns/1/name"}, lenient: true},
		{name: "an unknown key", request: "POST /v1/tables", body: `{"name": "a", "key": "b", "columns": [{"name": "a", "type": "text"}]}`, status: 400, code: "invalid_request", pointers: []string{"/key"}, lenient: true},
		{name: "a key of type json", request: "POST /v1/tables", body: `{"name": "a", "key": "a", "columns": [{"name": "a", "type": "json"}]}`, status: 400, code: "invalid_request", pointers: []string{"/columns/0/type"}, lenient: true},
		{name: "the key is dropped", setup: setupTable, request: "PATCH /v1/tables/$tbl", body: `{"columns": {"email": null}}`, status: 400, code: "invalid_request", pointers: []string{"/columns/email"}, lenient: true},
		{name: "an unknown member of a column", setup: setupTable, request: "PATCH /v1/tables/$tbl", body: `{"columns": {"city": {"index": true}}}`, status: 400, code: "invalid_request", pointers: []string{"/columns/city/index"}},
	})
}

func TestRows(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "a row is created", setup: setupTable, request: "POST /v1/tables/$tbl/rows", scope: "write", status: 201, members: rowMembers,
			body:     `{"values": {"email": "ada", "amount": 9007199254740993, "since": "2026-03-01T12:00:00+01:00", "extra": {"a": [1]}}}`,
			contains: `{"values": {"email": "ada", "city": null, "amount": 9007199254740993, "paid": null, "since": "2026-03-01T11:00:00.000000Z", "extra": {"a": [1]}}}`,
			after: func(w *testWorkspace, a *response) {
				if a.header.Get("Location") != w.expand("/v1/tables/$tbl/rows/")+a.str("id") {
					w.t.Errorf("Location %s", a.header.Get("Location"))
				}
			},
		},
		{name: "a row is read", setup: setupRow, request: "GET /v1/tables/$tbl/rows/$row", scope: "read", status: 200, members: rowMembers, contains: `{"values": {"city": "Bern", "amount": 1.5}}`},
		{name: "a row is updated", setup: setupRow, request: "PATCH /v1/tables/$tbl/rows/$row", scope: "write", status: 200, body: `{"values": {"city": null, "paid": true}}`, contains: `{"values": {"city": null, "paid": true, "amount": 1.5}}`},
		{
			name: "a row is deleted", setup: setupRow, request: "DELETE /v1/tables/$tbl/rows/$row", scope: "write", status: 204,
			after: func(w *testWorkspace, _ *response) {
				w.call("GET", "/v1/tables/$tbl/rows/$row", "").wantStatus(404, "row_not_found")
				w.call("PATCH", "/v1/tables/$tbl/rows/$row", `{"values": {}}`).wantStatus(404, "row_not_found")
				w.call("DELETE", "/v1/tables/$tbl/rows/$row", "").wantStatus(404, "row_not_found")
			},
		},
		{name: "a new row by its key", setup: setupTable, request: "PUT /v1/tables/$tbl/rows", scope: "write", status: 201, body: `{"values": {"email": "new"}}`},
		{name: "an existing row by its key", setup: setupRow, request: "PUT /v1/tables/$tbl/rows", scope: "write", status: 200, body: `{"values": {"email": "$email", "paid": false}}`, contains: `{"values": {"city": "Bern", "paid": false}}`},
		{
			name: "an upsert without a key column", request: "PUT /v1/tables/$tbl/rows", body: `{"values": {"a": "x"}}`, status: 400, code: "invalid_request", pointers: []string{"/values"}, lenient: true,
			setup: func(w *testWorkspace) {
				w.create("tbl", "/v1/tables", `{"name": "log", "columns": [{"name": "a", "type": "text"}]}`)
			},
		},
		{name: "a key that is taken", setup: setupRow, request: "POST /v1/tables/$tbl/rows", body: `{"values": {"email": "$email"}}`, status: 409, code: "row_exists", pointers: []string{"/values/email"}},
		{name: "invalid values", setup: setupTable, request: "POST /v1/tables/$tbl/rows", body: `{"values": {"amount": "5", "paid": 1, "town": "x"}}`, status: 400, code: "invalid_request", pointers: []string{"/values/email", "/values/amount", "/values/paid", "/values/town"}, lenient: true},
		{name: "no values", setup: setupTable, request: "POST /v1/tables/$tbl/rows", body: `{}`, status: 400, code: "invalid_request", pointers: []string{"/values"}, lenient: true},
		{name: "an invalid filter", setup: setupTable, request: "GET /v1/tables/$tbl/rows?filter=" + url.QueryEscape(`{"column": "town", "op": "=", "value": "x"}`), status: 400, code: "invalid_request", pointers: []string{"/filter/column"}},
		{name: "a filter that is not JSON", setup: setupTable, request: "GET /v1/tables/$tbl/rows?filter=city", status: 400, code: "invalid_request", pointers: []string{"/filter"}},
		{name: "an unknown column to sort by", setup: setupTable, request: "GET /v1/tables/$tbl/rows?sort=-town", status: 400, code: "invalid_request", pointers: []string{"/sort"}},
	})
}

// The limits of the plan are named as in the usage.
func TestTableLimits(t *testing.T) {
	t.Parallel()
	w := sharedServer(t).newTestWorkspaceWith(t, `{"name": "n", "plan": "free"}`)
	for range 10 {
		setupTable(w)
	}
	w.names["tbl_name"] = "one-too-many"
	for _, tc := range []struct{ method, path, body, limit string }{
		{"POST", "/v1/tables", newCustomers, "(tables)"},
		{"POST", "/v1/tables/$tbl/rows", `{"values": {"email": "x", "city": "` + strings.Repeat("x", 32<<10) + `"}}`, "(row_bytes)"},
	} {
		a := w.call(tc.method, tc.path, w.expand(tc.body)).wantStatus(403, "plan_limit_exceeded")
		if !strings.Contains(string(a.body), tc.limit) {
			t.Errorf("%s %s: %s", tc.method, tc.path, a.body)
		}
	}
}

func TestFindRows(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupTable(w)
	for i := range 5 {
		w.call("POST", "/v1/tables/$tbl/rows", fmt.Sprintf(`{"values": {"email": "%d", "city": "City %d", "amount": %d}}`, i, i%2, i)).wantStatus(201)
	}
	find := func(query string) string {
		t.Helper()
		var emails []string
		for _, row := range w.call("GET", "/v1/tables/$tbl/rows?"+query, "").wantStatus(200).object()["data"].([]any) {
			emails = append(emails, row.(map[string]any)["values"].(map[string]any)["email"].(string))
		}
		return strings.Join(emails, " ")
	}
	for query, want := range map[string]string{
		"":            "0 1 2 3 4",
		"sort=-email": "4 3 2 1 0",
		"sort=city":   "0 2 4 1 3",
		"filter=" + url.QueryEscape(`{"column": "city", "op": "starts_with", "value": "City 1"}`):                                                                         "1 3",
		"filter=" + url.QueryEscape(`{"and": [{"column": "amount", "op": ">", "value": 1}, {"not": {"column": "email", "op": "in", "value": ["3"]}}]}`) + "&sort=-amount": "4 2",
	} {
		if got := find(query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

// setupStateKey sets a key of the workspace with a new name.
func setupStateKey(w *testWorkspace) {
	w.t.Helper()
	w.names["state_key"] = uid.New("key")
	w.call("PUT", "/v1/state/$state_key", `{"value": {"n": 1}}`).wantStatus(201)
}

func TestState(t *testing.T) {
	const members = "key value expires_at created_at updated_at"
	runScenarios(t, []scenario{
		{
			name: "a key is created", request: "PUT /v1/state/alert:2026-11-17", scope: "write", body: `{"value": null, "expires_in": "1d"}`, status: 201, members: members, contains: `{"key": "alert:2026-11-17", "value": null}`,
			after: func(w *testWorkspace, a *response) {
				if a.header.Get("Location") != "/v1/state/alert:2026-11-17" || a.object()["expires_at"] == nil {
					w.t.Errorf("Location %s, %s", a.header.Get("Location"), a.body)
				}
				w.call("GET", "/v1/state/alert:2026-11-17", "").wantStatus(200)
				wantContains(w.t, w.call("GET", "/v1/usage", "").json(), `{"current": {"state_keys": 1, "stored_bytes": 20}}`)
			},
		},
		{name: "a key is replaced", setup: setupStateKey, request: "PUT /v1/state/$state_key", body: `{"value": 2}`, status: 200, contains: `{"value": 2, "expires_at": null}`},
		{name: "a key that exists stays", setup: setupStateKey, request: "PUT /v1/state/$state_key", body: `{"value": 2, "if_absent": true}`, status: 200, contains: `{"value": {"n": 1}}`},
		{name: "a key is read", setup: setupStateKey, request: "GET /v1/state/$state_key", scope: "read", status: 200, members: members},
		{name: "keys are listed", setup: setupStateKey, request: "GET /v1/state", scope: "read", status: 200, members: "data next_cursor"},
		{
			name: "a key is deleted", setup: setupStateKey, request: "DELETE /v1/state/$state_key", scope: "write", status: 204,
			after: func(w *testWorkspace, _ *response) {
				w.call("GET", "/v1/state/$state_key", "").wantStatus(404, "state_key_not_found")
				w.call("DELETE", "/v1/state/$state_key", "").wantStatus(404, "state_key_not_found")
			},
		},
		{
			name: "a key of a workflow", request: "PUT /v1/state/counter?workflow_id=$wf", body: `{"value": 1}`, status: 201, setup: func(w *testWorkspace) { w.workflow("wf") },
			after: func(w *testWorkspace, a *response) {
				if want := w.expand("/v1/state/counter?workflow_id=$wf"); a.header.Get("Location") != want {
					w.t.Errorf("Location %s", a.header.Get("Location"))
				}
				w.call("GET", "/v1/state/counter", "").wantStatus(404, "state_key_not_found")
				w.call("GET", "/v1/state/counter?workflow_id=$wf", "").wantStatus(200)
				wantContains(w.t, w.call("GET", "/v1/state?workflow_id=$wf", "").json(), `{"data": [{"key": "counter"}]}`)
			},
		},
		{name: "an unknown workflow", request: "PUT /v1/state/a?workflow_id=wf_01m7f8njhve3pt0yekqqme4qcm", body: `{"value": 1}`, status: 404, code: "workflow_not_found"},
		{name: "no value", request: "PUT /v1/state/a", body: `{}`, status: 400, code: "invalid_request", pointers: []string{"/value"}, lenient: true},
		{name: "an expiry that is no duration", request: "PUT /v1/state/a", body: `{"value": 1, "expires_in": "soon"}`, status: 400, code: "invalid_request", pointers: []string{"/expires_in"}},
		{name: "an empty expiry", request: "PUT /v1/state/a", body: `{"value": 1, "expires_in": ""}`, status: 400, code: "invalid_request", pointers: []string{"/expires_in"}},
		{name: "a bad name", request: "PUT /v1/state/a%20b", body: `{"value": 1}`, status: 400, code: "invalid_request", lenient: true},
		{name: "a value that is too large", request: "PUT /v1/state/a", body: `{"value": "` + strings.Repeat("x", 64<<10) + `"}`, status: 400, code: "invalid_request", pointers: []string{"/value"}},
	})
}

// setupStoredFile uploads a file and names it $stored: $file is a member of references.
func setupStoredFile(w *testWorkspace) {
	w.t.Helper()
	setupFile(w)
	w.names["stored"] = w.names["file"]
	delete(w.names, "file")
}

// setupFileTable creates a table with a file column, and a file.
func setupFileTable(w *testWorkspace) {
	w.t.Helper()
	setupStoredFile(w)
	w.names["tbl_name"] = strings.ReplaceAll(uid.New("t"), "_", "-")
	w.create("tbl", "/v1/tables", `{"name": "$tbl_name", "key": "name", "columns": [{"name": "name", "type": "text"}, {"name": "photo", "type": "file"}]}`)
}

func TestFileColumns(t *testing.T) {
	const unknown = "file_01m7fcp3qae35rw9hmckwyqppc"
	isNull := func(op string) string {
		return "GET /v1/tables/$tbl/rows?filter=" + url.QueryEscape(`{"column": "photo", "op": "`+op+`", "value": false}`)
	}
	runScenarios(t, []scenario{
		{
			name: "a file is set", setup: setupFileTable, request: "POST /v1/tables/$tbl/rows", scope: "write", status: 201,
			body: `{"values": {"name": "ada", "photo": {"$file": "$stored", "name": "other.txt", "size": 1}}}`, contains: `{"values": {"photo": {"$file": "$stored", "name": "hello.txt", "type": "text/plain", "size": 5}}}`,
			after: func(w *testWorkspace, a *response) {
				w.names["row"] = a.str("id")
				w.call("DELETE", "/v1/files/$stored", "").wantStatus(409, "file_in_use")
				wantContains(w.t, w.call("GET", "/v1/tables/$tbl/rows/$row", "").json(), w.expand(`{"values": {"photo": {"$file": "$stored", "name": "hello.txt"}}}`))
				wantContains(w.t, w.call("PATCH", "/v1/tables/$tbl/rows/$row", `{"values": {"photo": null}}`).wantStatus(200).json(), `{"values": {"photo": null}}`)
				w.call("GET", "/v1/files/$stored", "").wantStatus(404, "file_not_found")
			},
		},
		{name: "an unknown file", setup: setupFileTable, request: "POST /v1/tables/$tbl/rows", body: `{"values": {"name": "ada", "photo": {"$file": "` + unknown + `"}}}`, status: 400, code: "invalid_request", pointers: []string{"/values/photo"}, message: "there is no file"},
		{name: "not the id of a file", setup: setupFileTable, request: "POST /v1/tables/$tbl/rows", body: `{"values": {"name": "ada", "photo": {"$file": "hello.txt"}}}`, status: 400, code: "invalid_request", pointers: []string{"/values/photo"}, message: "must be the id of a file"},
		{name: "no file", setup: setupFileTable, request: "PUT /v1/tables/$tbl/rows", body: `{"values": {"name": "ada", "photo": "$stored"}}`, status: 400, code: "invalid_request", pointers: []string{"/values/photo"}, message: "expected a file"},
		{name: "a filter for null", setup: setupFileTable, request: isNull("is_null"), status: 200, scope: "read"},
		{name: "another filter", setup: setupFileTable, request: isNull("="), status: 400, code: "invalid_request", pointers: []string{"/filter/op"}, message: "of type file, which can only be compared with is_null"},
		{name: "sorted", setup: setupFileTable, request: "GET /v1/tables/$tbl/rows?sort=photo", status: 400, code: "invalid_request", pointers: []string{"/sort"}, message: "of type file, which has no order"},
		{name: "a key", request: "POST /v1/tables", body: `{"name": "a", "key": "a", "columns": [{"name": "a", "type": "file"}]}`, status: 400, code: "invalid_request", pointers: []string{"/columns/0/type"}, message: "the key must be of type"},
		{name: "an index", request: "POST /v1/tables", body: `{"name": "a", "columns": [{"name": "a", "type": "file", "indexed": true}]}`, status: 400, code: "invalid_request", pointers: []string{"/columns/0/indexed"}, message: "type file cannot be indexed"},
		{name: "another type", setup: setupFileTable, request: "PATCH /v1/tables/$tbl", body: `{"columns": {"photo": {"type": "json"}}}`, status: 400, code: "invalid_request", pointers: []string{"/columns/photo/type"}, message: "cannot change its type"},
	})
}

func TestImportAndExportFiles(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupFileTable(w)
	csv := w.expand("name,photo\nada,$stored\nbob,\n")
	wantContains(t, w.call("POST", "/v1/tables/$tbl/import", csv).wantStatus(200).json(), `{"created": 2}`)
	if out := w.call("GET", "/v1/tables/$tbl/export", "").wantStatus(200); string(out.body) != csv {
		t.Errorf("got %q, want %q", out.body, csv)
	}
	bad := w.call("POST", "/v1/tables/$tbl/import", "name,photo\nada,\neve,file_01m7fcp3qae35rw9hmckwyqppc\n").wantStatus(400, "invalid_request")
	wantContains(t, bad.json(), `{"error": {"details": [{"pointer": "/photo", "line": 3, "message": "there is no file \"file_01m7fcp3qae35rw9hmckwyqppc\""}]}}`)
	w.call("POST", "/v1/tables/$tbl/import", "name,photo\neve,photo.jpg\n").wantStatus(400, "invalid_request")
	w.call("DELETE", "/v1/files/$stored", "").wantStatus(409, "file_in_use")
	w.call("DELETE", "/v1/tables/$tbl", "").wantStatus(204)
}

// A value that is set through the API is plain data, also if it looks like a file.
func TestKeysThatLookLikeFiles(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupStoredFile(w)
	w.call("PUT", "/v1/state/k", `{"value": {"$file": "$stored"}}`).wantStatus(201)
	wantContains(t, w.call("GET", "/v1/state/k", "").json(), w.expand(`{"value": {"$file": "$stored"}}`))
	w.call("DELETE", "/v1/files/$stored", "").wantStatus(204)
}

func TestImportAndExport(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupTable(w)
	w.call("POST", "/v1/tables/$tbl/rows", `{"values": {"email": "ada", "city": "Bern", "paid": true}}`).wantStatus(201)
	file := "email,city,amount,extra\r\nada,\"Zürich, \"\"west\"\"\",,\r\nbob,,12.50,\"{\"\"a\"\": 1}\"\r\n"
	wantContains(t, w.call("POST", "/v1/tables/$tbl/import", file).wantStatus(200).json(), `{"created": 1, "updated": 1}`)
	out := w.call("GET", "/v1/tables/$tbl/export", "").wantStatus(200)
	want := "email,city,amount,paid,since,extra,note\nada,\"Zürich, \"\"west\"\"\",,true,,,\nbob,,12.5,,,\"{\"\"a\"\":1}\",\n"
	if string(out.body) != want || out.header.Get("Content-Type") != "text/csv; charset=utf-8" || out.header.Get("Content-Disposition") != w.expand(`attachment; filename="$tbl_name.csv"`) {
		t.Errorf("got %q %v, want %q", out.body, out.header, want)
	}
	wantContains(t, w.call("POST", "/v1/tables/$tbl/import", want).wantStatus(200).json(), `{"created": 0, "updated": 2}`)

	bad := w.call("POST", "/v1/tables/$tbl/import", "email,amount\nnew,1\nada,x\n").wantStatus(400, "invalid_request")
	wantContains(t, bad.json(), `{"error": {"details": [{"pointer": "/amount", "line": 3, "column": 5}]}}`)
	w.call("POST", "/v1/tables/$tbl/import", "").wantStatus(400, "invalid_request")
	w.call("POST", "/v1/tables/$tbl/import", "email\na\n", "Content-Type", "application/json").wantStatus(415, "unsupported_media_type")
	wantContains(t, w.call("GET", "/v1/tables/$tbl", "").json(), `{"rows": 2}`)
}
