package workflow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/workflow"
)

func definition(t testing.TB, text string) workflow.Definition {
	t.Helper()
	if strings.HasPrefix(text, "[") {
		text = `{"steps": ` + text + `}`
	}
	d, err := workflow.ParseDefinition([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// diffLines formats a diff, one line per change.
func diffLines(d workflow.Diff) []string {
	var out []string
	fields := func(list []workflow.FieldDiff) string {
		var b strings.Builder
		for _, f := range list {
			fmt.Fprintf(&b, " %s: %s → %s", f.Pointer, side(f.From), side(f.To))
		}
		return b.String()
	}
	for _, s := range d.Steps {
		line := fmt.Sprintf("%s %s", s.Edit, s.ID)
		switch {
		case s.From != nil && s.To != nil && s.FromBlock != s.ToBlock:
			line += fmt.Sprintf(" (%s → %s)", at(s.FromBlock), at(s.ToBlock))
		case s.FromBlock+s.ToBlock != "":
			line += fmt.Sprintf(" (%s)", at(max(s.FromBlock, s.ToBlock)))
		}
		out = append(out, line+fields(s.Fields))
	}
	for _, t := range d.Triggers {
		out = append(out, fmt.Sprintf("trigger %s %s", t.Edit, t.ID)+fields(t.Fields))
	}
	if len(d.Settings) > 0 {
		out = append(out, "settings"+fields(d.Settings))
	}
	return out
}

func side(value json.RawMessage) string {
	if value == nil {
		return "nothing"
	}
	return string(value)
}

func at(block string) string {
	if block == "" {
		return "top"
	}
	return block
}

// plain returns steps that do nothing: "a b(c d)" is the step a and the loop b
// that contains c and d.
func plain(ids string) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, id := range strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(ids)) {
		switch {
		case id == "(":
			b.WriteString(`, "foreach": "[1]", "steps": [`)
		case id == ")":
			b.WriteString(`}]`)
		case i > 0 && !strings.HasSuffix(b.String(), "["):
			b.WriteString(`}, {"id": "` + id + `", "name": "` + id + `"`)
		default:
			b.WriteString(`{"id": "` + id + `", "name": "` + id + `"`)
		}
	}
	if ids != "" {
		b.WriteByte('}')
	}
	b.WriteByte(']')
	return b.String()
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		from, to string
		want     []string
	}{
		"two empty lists":                    {`[]`, `[]`, nil},
		"the same":                           {plain("a b(c d) e"), plain("a b(c d) e"), nil},
		"white space and order of members":   {`[{"id": "a", "with": {"x": 1, "y": [1, 2]}}]`, `[ {"with": {"y": [1,2], "x": 1}, "id": "a"} ]`, nil},
		"needs written out":                  {`[{"id": "a"}, {"id": "b"}]`, `[{"id": "a", "needs": []}, {"id": "b", "needs": ["a"]}]`, nil},
		"needs in another order":             {`[{"id": "a"}, {"id": "b"}, {"id": "c", "needs": ["a", "b"]}]`, `[{"id": "a"}, {"id": "b"}, {"id": "c", "needs": ["b", "a"]}]`, nil},
		"a step at the end":                  {plain("a"), plain("a b"), []string{"added b"}},
		"the first step":                     {plain(""), plain("a"), []string{"added a"}},
		"a step at the beginning":            {plain("b"), plain("a b"), []string{"added a", `changed b /needs: [] → ["a"]`}},
		"a step in between":                  {plain("a c"), plain("a b c"), []string{"added b", `changed c /needs: ["a"] → ["b"]`}},
		"a step removed":                     {plain("a b c"), plain("a c"), []string{"removed b", `changed c /needs: ["b"] → ["a"]`}},
		"the first step removed":             {plain("a b"), plain("b"), []string{"removed a", `changed b /needs: ["a"] → []`}},
		"every step removed":                 {plain("a b(c)"), plain(""), []string{"removed a", "removed b", "removed c (b)"}},
		"a value of the input":               {`[{"id": "a", "with": {"url": "x", "n": 1}}]`, `[{"id": "a", "with": {"url": "y", "n": 1}}]`, []string{`changed a /with/url: "x" → "y"`}},
		"a value deep in the input":          {`[{"id": "a", "with": {"h": {"a/b": {"c": 1}}}}]`, `[{"id": "a", "with": {"h": {"a/b": {"c": 2}}}}]`, []string{`changed a /with/h/a~1b/c: 1 → 2`}},
		"a member added to the input":        {`[{"id": "a", "with": {}}]`, `[{"id": "a", "with": {"x": null}}]`, []string{`changed a /with/x: nothing → null`}},
		"a member removed from the input":    {`[{"id": "a", "with": {"x": null}}]`, `[{"id": "a", "with": {}}]`, []string{`changed a /with/x: null → nothing`}},
		"an input added":                     {`[{"id": "a"}]`, `[{"id": "a", "with": {"x": {"y": 1}}}]`, []string{`changed a /with: nothing → {"x":{"y":1}}`}},
		"a list in the input, as a whole":    {`[{"id": "a", "with": {"l": [1, 2]}}]`, `[{"id": "a", "with": {"l": [2, 1]}}]`, []string{`changed a /with/l: [1,2] → [2,1]`}},
		"large numbers":                      {`[{"id": "a", "with": {"n": 9007199254740993}}]`, `[{"id": "a", "with": {"n": 9007199254740992}}]`, []string{`changed a /with/n: 9007199254740993 → 9007199254740992`}},
		"text with HTML characters":          {`[{"id": "a", "name": "a < b"}]`, `[{"id": "a", "name": "a & b"}]`, []string{`changed a /name: "a < b" → "a & b"`}},
		"the action and what it takes":       {`[{"id": "a", "uses": "flow.wait", "with": {"for": "1s"}}]`, `[{"id": "a", "uses": "data.set", "with": {"values": {}}}]`, []string{`changed a /uses: "flow.wait" → "data.set" /with/for: "1s" → nothing /with/values: nothing → {}`}},
		"options of a step":                  {`[{"id": "a", "join": "all", "retry": {"factor": 2}}]`, `[{"id": "a", "on_error": "continue", "if": true, "retry": {"factor": 3}}]`, []string{`changed a /if: nothing → "true" /join: "all" → nothing /on_error: nothing → "continue" /retry/factor: 2 → 3`}},
		"two steps swapped":                  {plain("a b"), plain("b a"), []string{`moved b /needs: ["a"] → []`, `changed a /needs: [] → ["b"]`}},
		"a step moved to the end":            {plain("a b c d"), plain("b c d a"), []string{`changed b /needs: ["a"] → []`, `moved a /needs: [] → ["d"]`}},
		"positions without effect":           {`[{"id": "a", "needs": []}, {"id": "b", "needs": []}]`, `[{"id": "b", "needs": []}, {"id": "a", "needs": []}]`, []string{"moved b"}},
		"a step moved into a block":          {plain("a b(c)"), plain("b(a c)"), []string{`changed b /needs: ["a"] → []`, "moved a (top → b)", `changed c (b) /needs: [] → ["a"]`}},
		"a step moved out of a block":        {plain("b(a c)"), plain("b(c) a"), []string{`changed c (b) /needs: ["a"] → []`, `moved a (b → top) /needs: [] → ["b"]`}},
		"a step moved to another block":      {plain("a(x y) b(z)"), plain("a(x) b(z y)"), []string{`moved y (a → b) /needs: ["x"] → ["z"]`}},
		"a block moved into a block":         {plain("a(x) b(y)"), plain("a(x b(y))"), []string{`moved b (top → a) /needs: ["a"] → ["x"]`}},
		"a block dissolved":                  {plain("a(x y)"), plain("x y"), []string{"removed a", "moved x (a → top)", "moved y (a → top)"}},
		"steps wrapped in a block":           {plain("x y"), plain("a(x y)"), []string{"added a", "moved x (top → a)", "moved y (top → a)"}},
		"a block itself, not its steps":      {`[{"id": "a", "foreach": "[1]", "steps": [{"id": "x"}]}]`, `[{"id": "a", "foreach": "[2]", "parallel": 3, "steps": [{"id": "x"}]}]`, []string{`changed a /foreach: "[1]" → "[2]" /parallel: nothing → 3`}},
		"a step of a block, not the block":   {`[{"id": "a", "foreach": "[1]", "steps": [{"id": "x", "name": "X"}]}]`, `[{"id": "a", "foreach": "[1]", "steps": [{"id": "x", "name": "Y"}]}]`, []string{`changed x (a) /name: "X" → "Y"`}},
		"a step in a block in a block":       {plain("a(b(x))"), plain("a(b(x y))"), []string{"added y (a.b)"}},
		"a block with its steps":             {plain("a"), plain("a b(c d)"), []string{"added b", "added c (b)", "added d (b)"}},
		"only the id":                        {`[{"id": "a"}, {"id": "b", "uses": "x"}]`, `[{"id": "a"}, {"id": "c", "uses": "x"}]`, []string{`renamed c /id: "b" → "c"`}},
		"an id that others need":             {`[{"id": "a", "uses": "x"}, {"id": "b"}]`, `[{"id": "c", "uses": "x"}, {"id": "b"}]`, []string{`renamed c /id: "a" → "c"`, `changed b /needs: ["a"] → ["c"]`}},
		"an id and more":                     {`[{"id": "a", "uses": "x"}]`, `[{"id": "b", "uses": "y"}]`, []string{"removed a", "added b"}},
		"two ids, ambiguous":                 {`[{"id": "a"}, {"id": "b"}]`, `[{"id": "c"}, {"id": "d"}]`, []string{"removed a", "removed b", "added c", "added d"}},
		"the id of a block":                  {`[{"id": "a", "foreach": "[1]", "steps": [{"id": "x"}]}]`, `[{"id": "b", "foreach": "[1]", "steps": [{"id": "x"}]}]`, []string{`renamed b /id: "a" → "b"`}},
		"the ids of a block and of its step": {`[{"id": "a", "foreach": "[1]", "steps": [{"id": "x"}]}]`, `[{"id": "b", "foreach": "[1]", "steps": [{"id": "y"}]}]`, []string{`renamed b /id: "a" → "b"`, `renamed y (a → b) /id: "x" → "y"`}},
		"the same step in another block":     {`[{"id": "a", "foreach": "[1]", "steps": [{"id": "k"}, {"id": "x", "uses": "u"}]}]`, `[{"id": "a", "foreach": "[1]", "steps": [{"id": "k"}]}, {"id": "y", "uses": "u"}]`, []string{"removed x (a)", "added y"}},
		"triggers": {
			`{"triggers": [{"id": "a", "type": "manual"}, {"id": "b", "type": "manual"}, {"id": "d", "type": "manual"}]}`,
			`{"triggers": [{"id": "d", "type": "manual"}, {"id": "c", "type": "manual"}, {"id": "b", "type": "other"}]}`,
			[]string{"trigger removed a", `trigger changed b /type: "manual" → "other"`, "trigger added c"},
		},
		"settings": {
			`{"settings": {"timeout": "1h", "concurrency": {"limit": 1, "key": "k"}}}`, `{"settings": {"concurrency": {"limit": 2, "key": "k"}}}`,
			[]string{`settings /concurrency/limit: 1 → 2 /timeout: "1h" → nothing`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := workflow.Compare(definition(t, test.from), definition(t, test.to))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, diffLines(d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if d.Identical() != (test.want == nil) {
				t.Errorf("identical: %t", d.Identical())
			}
		})
	}
}

// The steps of a diff have explicit needs and no inner steps.
func TestCompareReturnsFlatSteps(t *testing.T) {
	t.Parallel()
	d, err := workflow.Compare(definition(t, plain("a")), definition(t, plain("a b(c)")))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(d.Steps[0].To)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"id":"b","name":"b","needs":["a"],"foreach":"[1]"}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
