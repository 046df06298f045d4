package replay_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation/replay"
)

const acme = `
id: acme
name: Acme
category: support
docs: https://acme.example/api
base_url: https://acme.example
connection:
  auth: [{kind: bearer, label: Token}]
  hosts: [acme.example]
  test: {path: /me}
  learn: {label: "${{ test.email }}"}
errors: [{when: "body.error != nil", code: "${{ body.error }}", message: "Acme: ${{ body.error }}"}]
operations:
  add:
    title: Add
    input: {name: {type: string, required: true}, tags: {type: list, items: {type: string}}, count: {type: integer}}
    request: {method: POST, path: /things, json: {name: "${{ input.name }}", tags: "${{ input.tags }}", count: "${{ input.count }}"}}
  find:
    title: Find
    input: {name: {type: string, required: true}}
    request: {path: /things, query: {name: "${{ input.name }}"}, items: body.things}
`

func parse(t *testing.T, manifest, tests string) (*integration.Integration, *replay.Tests) {
	t.Helper()
	i, err := integration.Parse([]byte(manifest), nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := replay.Parse([]byte(tests))
	if err != nil {
		t.Fatal(err)
	}
	return i, parsed
}

// A test that fails says what differs, member by member.
func TestRun(t *testing.T) {
	t.Parallel()
	const (
		good   = `{method: POST, url: "https://acme.example/things", json: {name: Box, tags: [a, b]}}`
		input  = `{name: Box, tags: [a, b]}`
		answer = `{json: {id: 1}}`
		output = `output: {id: 1}`
	)
	for _, tc := range []struct{ name, input, request, answer, result, want string }{
		{"passes", input, good, answer, output, ""},
		{"another method", input, `{url: "https://acme.example/things", json: {name: Box, tags: [a, b]}}`, answer, output, "request 1: the method is POST, want GET"},
		{"another URL", input, `{method: POST, url: "https://acme.example/boxes", json: {name: Box, tags: [a, b]}}`, answer, output, "request 1: the URL is https://acme.example/things, want https://acme.example/boxes"},
		{"another query", input, `{method: POST, url: "https://acme.example/things", query: {x: 1}, json: {name: Box, tags: [a, b]}}`, answer, output, "request 1: the query is not as expected:\n  /x: is missing, want \"1\""},
		{
			"another body", input, `{method: POST, url: "https://acme.example/things", json: {name: box, size: 1, tags: [a, c, d]}}`, answer, output,
			"request 1: the body is not as expected:\n  /name: is \"Box\", want \"box\"\n  /size: is missing, want 1\n  /tags/1: is \"b\", want \"c\"\n  /tags/2: is missing, want \"d\"",
		},
		{"more in the body", input, `{method: POST, url: "https://acme.example/things", json: {name: Box}}`, answer, output, "request 1: the body is not as expected:\n  /tags: is [\"a\",\"b\"], but nothing is expected"},
		{"another output", input, good, answer, `output: {id: "1", name: Box}`, "the output is not as expected:\n  /id: is 1, want \"1\"\n  /name: is missing, want \"Box\""},
		{"an output of another type", input, good, `{json: [1]}`, `output: {id: 1}`, "the output is not as expected:\n  /id: is missing, want 1\n  /value: is [1], but nothing is expected"},
		{"an error that is not expected", input, good, `{status: 404, json: {error: gone}}`, output, "it failed: not_found: Acme: gone"},
		{"an error that does not happen", input, good, answer, `error: {code: not_found}`, "it succeeded, but should have failed"},
		{"an error", input, good, `{status: 404, json: {error: gone}}`, `error: {code: not_found, service_code: gone}`, ""},
		{
			"another error", input, good, `{status: 404, json: {error: gone}}`, `error: {code: denied, service_code: gone, message: "Acme: no"}`,
			"the error is not as expected:\n  /code: is \"not_found\", want \"denied\"\n  /message: is \"Acme: gone\", want \"Acme: no\"",
		},
		{"an input that the operation does not have", `{name: Box, size: 1}`, good, answer, output, "the input is not valid:\n  /size: unknown field \"size\""},
		{"an input of another type", `{name: Box, count: many}`, good, answer, output, "the input is not valid:\n  /count: must be integer, not string"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			i, tests := parse(t, acme, `
operations:
  add:
    - name: a thing
      input: `+tc.input+`
      exchanges: [{request: `+tc.request+`, answer: `+tc.answer+`}]
      `+tc.result+`
`)
			want := []replay.Result{{Of: "add", Test: "a thing", Line: 4, Problem: tc.want}}
			if diff := cmp.Diff(want, replay.Run(t.Context(), nil, i, tests, nil, nil)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

const twoTests = `
operations:
  add:
    - name: one
      input: {name: Box}
      output: {}
    - name: two
      input: {name: Box}
      exchanges:
        - request: {method: POST, url: "https://acme.example/things", json: {name: Box}}
          answer: {json: {}}
        - request: {url: "https://acme.example/things"}
          answer: {json: {}}
      output: {}
`

func TestRunComparesRequests(t *testing.T) {
	t.Parallel()
	i, tests := parse(t, acme, twoTests)
	want := []replay.Result{
		{Of: "add", Test: "one", Line: 4, Problem: "it sends a request that is not expected: POST https://acme.example/things"},
		{Of: "add", Test: "two", Line: 7, Problem: "it does not send 1 of the expected requests, the first is GET https://acme.example/things"},
	}
	if diff := cmp.Diff(want, replay.Run(t.Context(), nil, i, tests, nil, nil)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	second := func(operation, test string) bool { return operation == "add" && test == "two" }
	if diff := cmp.Diff(want[1:], replay.Run(t.Context(), nil, i, tests, nil, second)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	i, tests := parse(t, acme, `
operations:
  ad:
    - {name: a, output: {}}
  add:
    - {name: a, output: {}}
    - {name: a, output: {}}
    - {output: {}}
    - {name: b}
    - {name: c, output: {}, error: {code: failed}}
`)
	want := `line 3:3: /operations/ad: acme has no operation "ad" (did you mean "add"?)
line 7:7: /operations/add/1: add has another test with the name "a"
line 8:7: /operations/add/2: needs a name
line 9:7: /operations/add/3: needs either an output or an error
line 10:7: /operations/add/4: needs either an output or an error`
	if diff := cmp.Diff(want, tests.Check(i).Error()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/operations/find"}, tests.Untested(i)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestParseRejects(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"operations:\n  add:\n    - nmae: a\n":                                 `line 3:7: /operations/add/0/nmae: unknown field "nmae" (did you mean "name"?)`,
		"operations:\n  add:\n    - name: a\n      exchanges: {request: {}}\n": "line 4:18: /operations/add/0/exchanges: must be an array, not an object",
		"operations:\n  add: [\n":                                              "line 2:8: /operations/add: the bracket is not closed",
	} {
		if _, err := replay.Parse([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: the error is %v, want %s", text, err, want)
		}
	}
}

// A part of a form that is repeated is a list, and one that is missing is noticed.
func TestRepeatedParts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ parts, want string }{
		{`{name: Box, tags: [a, b, c], files: [{filename: a.txt, type: text/plain; charset=utf-8, text: A}, {filename: b.txt, type: text/plain; charset=utf-8, text: B}]}`, ""},
		{`{name: Box, tags: [a, b], files: [{filename: a.txt, type: text/plain; charset=utf-8, text: A}, {filename: b.txt, type: text/plain; charset=utf-8, text: B}]}`, "request 1: the multipart body is not as expected:\n  /tags/2: is \"c\", but nothing is expected"},
	} {
		i, tests := parse(t, acme+`
  upload:
    title: Upload
    input: {tags: {type: list, items: {type: string}}, files: {type: list, items: {type: file}}}
    request: {method: POST, path: /files, multipart: {name: Box, tags: "${{ input.tags }}", files: "${{ input.files }}"}}
`, `
operations:
  upload:
    - name: two files
      input: {tags: [a, b, c], files: [{$file: a.txt}, {$file: b.txt}]}
      files: {a.txt: A, b.txt: B}
      exchanges: [{request: {method: POST, url: "https://acme.example/files", multipart: `+tc.parts+`}, answer: {json: {}}}]
      output: {}
`)
		results := replay.Run(t.Context(), nil, i, tests, nil, nil)
		if len(results) != 1 || results[0].Problem != tc.want {
			t.Errorf("%+v, want %q", results, tc.want)
		}
	}
}
