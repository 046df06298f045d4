package transfer_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action/actiontest"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/jsonpath"
)

// respond is a client whose server always responds in the same way.
type respond struct {
	status int
	body   string
}

func (r respond) Do(context.Context, egress.Request) (*egress.Response, error) {
	return nil, errors.New("no test needs it")
}

func (r respond) Stream(context.Context, egress.Request) (*egress.Stream, error) {
	return egress.NewStream(r.status, http.Header{}, "https://api.example", []byte(r.body)), nil
}

// blobs sends a request whose response has files at the paths.
func blobs(t *testing.T, files *actiontest.Files, r respond, name string, paths ...string) ([]*expr.File, *egress.Response, error) {
	t.Helper()
	return transfer.DownloadBlobs(t.Context(), r, egress.Request{MaxBody: 200}, files, mustParse(t, paths...), name)
}

func TestDownloadBlobs(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789", 20_000)
	files := actiontest.NewFiles()
	body := fmt.Sprintf(`{"b64\u0061": "x", "list": [{"na\"me": "[{\\", "image": %q}, {"image": null}, {"image": "_-8"}, {"image": ["aaaa"]}, 1], "image": "aaaa", "one": {"raw": "QUJD\nRA\u003d\u003d"}}`,
		base64.StdEncoding.EncodeToString([]byte(large)))
	got, resp, err := blobs(t, files, respond{200, body}, "a.png", "list[].image", "one.raw")
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"b64\u0061": "x", "list": [{"na\"me": "[{\\", "image": "0"}, {"image": null}, {"image": "1"}, {"image": ["aaaa"]}, 1], "image": "aaaa", "one": {"raw": "2"}}`; string(resp.Body) != want {
		t.Errorf("the rest is %s", resp.Body)
	}
	for i, want := range []string{large, "\xff\xef", "ABCD"} {
		if content := string(files.Content[got[i].ID]); content != want || got[i].Name != "a.png" || got[i].Type != "image/png" {
			t.Errorf("the file %d is %v with %d bytes", i, got[i], len(content))
		}
	}
	got, _, err = blobs(t, files, respond{200, `[["` + base64.StdEncoding.EncodeToString([]byte("%PDF-1.7 and more")) + `"]]`}, "", "[][]")
	if err != nil || len(got) != 1 || got[0].Type != "application/pdf" || got[0].Name != "download" {
		t.Errorf("a file without a name: %v, %v", got, err)
	}
}

func TestDownloadBlobsFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body string
		want egress.Code
	}{
		"no base64":       {`{"data": "a b c d!"}`, egress.InvalidResponse},
		"half a byte":     {`{"data": "a"}`, egress.InvalidResponse},
		"cut off":         {`{"data": "aaaa`, egress.InvalidResponse},
		"cut off outside": {`{"a": "b`, egress.InvalidResponse},
		"an odd escape":   {`{"data": "\u1234"}`, egress.InvalidResponse},
		"deep":            {strings.Repeat("[", 150), egress.InvalidResponse},
		"a long rest":     {`{"a": "` + strings.Repeat("a", 200) + `"}`, egress.ResponseTooLarge},
		"many files":      {`{"list": [` + strings.Repeat(`"",`, 1001) + `""]}`, egress.InvalidResponse},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, maxRest := actiontest.NewFiles(), int64(200)
			paths := []string{"data"}
			if strings.Contains(test.body, "list") {
				paths, maxRest = []string{"list[]"}, 1<<20
			}
			got, _, err := transfer.DownloadBlobs(t.Context(), respond{200, test.body}, egress.Request{MaxBody: maxRest}, files, mustParse(t, paths...), "a.txt")
			if err == nil || !strings.HasPrefix(err.Error(), string(test.want)) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	files := actiontest.NewFiles()
	files.Limit = 3
	if _, _, err := blobs(t, files, respond{200, `{"data": "AAAAAAAA"}`}, "", "data"); err == nil || !strings.Contains(err.Error(), "file_too_large") || files.Aborted != 1 {
		t.Errorf("a file above the limit: %v", err)
	}
	if got, resp, err := blobs(t, files, respond{404, `{"data": "AAAAAAAA"}`}, "", "data"); got != nil || err != nil || string(resp.Body) != `{"data": "AAAAAAAA"}` {
		t.Errorf("an error: %v, %s, %v", got, resp.Body, err)
	}
}

func mustParse(t *testing.T, texts ...string) []jsonpath.Path {
	t.Helper()
	var out []jsonpath.Path
	for _, text := range texts {
		path, err := jsonpath.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, path)
	}
	return out
}

// Whatever JSON a response is, the files and the rest are what a decoder of the whole finds.
func FuzzDownloadBlobs(f *testing.F) {
	for _, seed := range []string{
		`{"data": "aGVsbG8="}`, `{"a": [{"data": "aGVsbG8"}, {"data": "_-8"}], "data": {"data": "YQ"}}`, `["data", "\"data\":", {"da\u0074a": "YWI="}]`,
		`{"a":{"data":"\\"},"data":"YQ=="}`, `"data"`, `{"data":"a\/b+"}`, `[[[{"data":[]}],"data"]]`, `{"a":[{"data":""}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var decoded any
		if json.Unmarshal([]byte(body), &decoded) != nil || len(body) > 10_000 || hasDuplicates(body) {
			return // the decoder of the copy rejects it
		}
		files := actiontest.NewFiles()
		paths := mustParse(t, "data", "a[].data")
		got, resp, err := transfer.DownloadBlobs(t.Context(), respond{200, body}, egress.Request{MaxBody: 20_000}, files, paths, "f")
		valid, count := true, 0
		for _, path := range paths {
			decoded = path.Replace(decoded, func(v any) any {
				text, ok := v.(string)
				if !ok {
					return v
				}
				count++
				content, err := base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/", "=", "", "\r", "", "\n", "").Replace(text))
				valid = valid && err == nil
				return map[string]any{"file": string(content)}
			})
		}
		if err != nil {
			if valid && !strings.Contains(err.Error(), "nested") {
				t.Fatalf("%s: %v", body, err)
			}
			return
		}
		var rest any
		if err := json.Unmarshal(resp.Body, &rest); err != nil {
			t.Fatalf("the rest of %s is %s: %v", body, resp.Body, err)
		}
		for _, path := range paths {
			rest = path.Replace(rest, func(v any) any {
				text, ok := v.(string)
				if !ok {
					return v
				}
				i, err := strconv.Atoi(text)
				if err != nil {
					t.Fatalf("the rest of %s is %s", body, resp.Body)
				}
				return map[string]any{"file": string(files.Content[got[i].ID])}
			})
		}
		if diff := cmp.Diff(decoded, rest); diff != "" || !valid || count != len(got) {
			t.Errorf("%s: %s", body, diff)
		}
	})
}

// hasDuplicates reports whether an object has two members of the same name.
func hasDuplicates(text string) bool {
	dec := json.NewDecoder(strings.NewReader(text))
	var walk func() bool
	walk = func() bool {
		token, err := dec.Token()
		if err != nil {
			return false
		}
		delim, _ := token.(json.Delim)
		seen := map[any]bool{}
		for (delim == '{' || delim == '[') && dec.More() {
			if delim == '{' {
				name, _ := dec.Token()
				if seen[name] {
					return true
				}
				seen[name] = true
			}
			if walk() {
				return true
			}
		}
		if delim == '{' || delim == '[' {
			_, _ = dec.Token()
		}
		return false
	}
	return walk()
}
