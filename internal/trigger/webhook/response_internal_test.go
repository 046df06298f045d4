package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

func TestParseResponse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		output string
		want   Response
	}{
		"nothing":              {``, Response{200, map[string]string{"Content-Type": "application/json"}, []byte(`{}`), nil}},
		"an output":            {`{"status":7,"body":"x"}`, Response{200, map[string]string{"Content-Type": "application/json"}, []byte(`{"status":7,"body":"x"}`), nil}},
		"an empty response":    {`{"response":{}}`, Response{200, map[string]string{}, nil, nil}},
		"a status alone":       {`{"response":{"status":204,"body":null}}`, Response{204, map[string]string{}, nil, nil}},
		"text":                 {`{"response":{"body":"<b>é</b>"}}`, Response{200, map[string]string{"Content-Type": "text/plain; charset=utf-8"}, []byte("<b>é</b>"), nil}},
		"JSON":                 {`{"response":{"status":201,"body":{"a":[1,"<"]}},"more":1}`, Response{201, map[string]string{"Content-Type": "application/json"}, []byte(`{"a":[1,"<"]}`), nil}},
		"bytes":                {`{"response":{"body":{"base64":"/wA="}}}`, Response{200, map[string]string{"Content-Type": "application/octet-stream"}, []byte{0xff, 0}, nil}},
		"its own content type": {`{"response":{"headers":{"content-type":"text/csv"},"body":"a,b"}}`, Response{200, map[string]string{"Content-Type": "text/csv"}, []byte("a,b"), nil}},
		"an API's headers":     {`{"response":{"headers":{"ETag":"\"1\"","Cache-Control":"no-store","Vary":"Accept","Retry-After":5,"Link":"<https://a.example/2>; rel=\"next\"","Content-Language":"de"}}}`, Response{200, map[string]string{"Etag": `"1"`, "Cache-Control": "no-store", "Vary": "Accept", "Retry-After": "5", "Link": `<https://a.example/2>; rel="next"`, "Content-Language": "de"}, nil, nil}},
		"headers":              {`{"response":{"status":303,"headers":{"Location":"https://a.example/x","x-n":7,"X-T":true,"x-f":1.5}}}`, Response{303, map[string]string{"Location": "https://a.example/x", "X-N": "7", "X-T": "true", "X-F": "1.5"}, nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var output json.RawMessage
			if test.output != "" {
				output = json.RawMessage(test.output)
			}
			got, err := parseResponse(output, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseResponseErrors(t *testing.T) {
	t.Parallel()
	for _, output := range []string{
		`{"response":null}`, `{"response":7}`, `{"response":{"code":200}}`, `{"response":{"status":"200"}}`, `{"response":{"status":199}}`, `{"response":{"status":101}}`,
		`{"response":{"status":600}}`, `{"response":{"status":200.5}}`, `{"response":{"headers":[]}}`, `{"response":{"headers":{"x":{}}}}`, `{"response":{"headers":{"x":null}}}`,
		`{"response":{"headers":{"x":"a\r\nset-cookie: b"}}}`, `{"response":{"headers":{"x":"a\nb"}}}`, `{"response":{"headers":{"x":"é"}}}`, `{"response":{"headers":{"x y":"a"}}}`,
		`{"response":{"headers":{"x\r\n":"a"}}}`, `{"response":{"headers":{"":"a"}}}`,
		`{"response":{"headers":{"Set-Cookie":"a=b"}}}`, `{"response":{"headers":{"transfer-encoding":"chunked"}}}`, `{"response":{"headers":{"Content-Length":"1"}}}`,
		`{"response":{"headers":{"CONNECTION":"close"}}}`, `{"response":{"headers":{"content-security-policy":"x"}}}`, `{"response":{"headers":{"Strict-Transport-Security":"x"}}}`,
		`{"response":{"headers":{"x-request-id":"x"}}}`, `{"response":{"headers":{"X-RateLimit-Limit":"1"}}}`, `{"response":{"headers":{"Upgrade":"h2c"}}}`,
		`{"response":{"headers":{"x-n":"a\r\nset-cookie: b"}}}`, `{"response":{"headers":{"x-n":"é"}}}`, `{"response":{"headers":{"x-n":{}}}}`, `{"response":{"headers":{"x-n":null}}}`,
		`{"response":{"headers":{"Location":"https://a.example"}}}`, `{"response":{"status":201,"headers":{"Location":"/x"}}}`, `{"response":{"headers":{"Link":"</a.js>; rel=Preload"}}}`,
		`{"response":{"headers":{"Service-Worker-Allowed":"/"}}}`, `{"response":{"headers":{"Clear-Site-Data":"*"}}}`, `{"response":{"headers":{"Refresh":"0;url=x"}}}`,
	} {
		if got, err := parseResponse(json.RawMessage(output), nil); err == nil {
			t.Errorf("%s becomes %+v", output, got)
		}
	}
}

// A response is sent from the origin of the dashboard, often through a proxy.
func TestResponseCannotSetHeadersThatOthersActOn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"NEL", "Report-To", "Reporting-Endpoints", "X-Accel-Redirect", "X-Accel-Buffering", "X-Sendfile", "X-Sendfile-Type", "X-Lighttpd-Send-File", "X-Reproxy-URL",
		"Set-Cookie", "Set-Cookie2", "Accept-CH", "Speculation-Rules", "Supports-Loading-Mode", "Critical-CH", "Alt-Svc", "Access-Control-Allow-Origin", "Allow", "Age",
		"Date", "Server", "WWW-Authenticate", "Timing-Allow-Origin", "SourceMap", "Sec-CH-UA", "X-Forwarded-For", "X-Real-IP", "X-Frame-Options", "X-Content-Type-Options",
		"X-XSS-Protection", "X-Permitted-Cross-Domain-Policies", "X-DNS-Prefetch-Control", "X-Service-Depth", "X-RateLimit-Limit", "X-Request-Id", "Anything", "x",
	} {
		output, err := json.Marshal(map[string]any{"response": map[string]any{"status": 302, "headers": map[string]any{name: "1"}}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseResponse(output, nil); err == nil {
			t.Errorf("%s becomes %+v", name, got)
		}
	}
}

func TestFinalOutput(t *testing.T) {
	t.Parallel()
	program := &workflow.Program{Steps: []workflow.CompiledStep{{Step: workflow.Step{ID: "a"}}, {Step: workflow.Step{ID: "b"}}, {Step: workflow.Step{ID: "c"}}}}
	step := func(path string, status run.StepStatus) run.Step {
		return run.Step{Path: path, Status: status, Output: json.RawMessage(`"` + path + `"`)}
	}
	for want, steps := range map[string][]run.Step{
		`"c"`: {step("c", run.StepSucceeded), step("a", run.StepSucceeded)},
		`"a"`: {step("a", run.StepSucceeded), step("b", run.StepSkipped), step("c", run.StepFailed)},
		``:    {step("a", run.StepSkipped)},
		`"b"`: {step("a", run.StepSucceeded), step("b", run.StepSucceeded), step("c", run.StepCancelled), step("c[0].x", run.StepSucceeded)},
	} {
		if got, _ := finalOutput(program, steps); string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func FuzzParseResponse(f *testing.F) {
	f.Add(`{"response":{"status":201,"headers":{"x-n":"y"},"body":{"base64":"AA=="}}}`)
	f.Add(`{"response":{"headers":{"x-n":"a\r\nb"}}}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, output string) {
		got, err := parseResponse(json.RawMessage(output), nil)
		if err != nil {
			return
		}
		for name, value := range got.Header {
			for _, c := range name + value {
				if c < ' ' && c != '\t' || c > '~' {
					t.Fatalf("%q: %q", name, value)
				}
			}
		}
		if got.Status < 200 || got.Status > 599 {
			t.Fatal(got.Status)
		}
	})
}

// A file is the body only if the output refers to one there.
func TestFileAsResponse(t *testing.T) {
	t.Parallel()
	output := json.RawMessage(`{"response": {"status": 201, "body": {"$file": "file_1", "name": "a \"b\".pdf", "type": "application/pdf", "size": 3, "sha256": "x"}}}`)
	got, err := parseResponse(output, []string{"/other", "/response/body"})
	if err != nil {
		t.Fatal(err)
	}
	if got.File == nil || got.File.ID != "file_1" || got.Status != 201 || got.Header["Content-Type"] != "application/pdf" || got.Header["Content-Disposition"] != `inline; filename="a \"b\".pdf"` {
		t.Errorf("got %+v", got)
	}
	got, err = parseResponse(output, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.File != nil || got.Header["Content-Type"] != "application/json" || !strings.Contains(string(got.Body), "file_1") {
		t.Errorf("data that looks like a file was taken for one: %+v", got)
	}
}
