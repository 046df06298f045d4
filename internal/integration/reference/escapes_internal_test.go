package reference

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation/replay"
)

// hostile is text that would be markup, HTML, or the end of a cell, an element or a block
// of code.
const hostile = "</details>\n\n# Injected\n\n| a | b |\n|---|---|\n```\n\n````yaml\n<script>alert(1)</script> [x](javascript:alert(1)) " +
	"![i](https://evil.example/i.png) `code` a|b a\\|b `a\\|b` **b** _i_ ~~s~~ <!-- &lt; https://evil.example/<b>|x\n---\n- item"

type object = map[string]any

// page returns the page of an integration whose manifest has the text wherever any text
// can be.
func pageWith(t *testing.T, text string) string {
	t.Helper()
	input := object{
		"type": "string", "title": text, "help": text, "required": true, "example": text, "options": "list_" + "things",
	}
	field := object{"title": text, "help": text, "example": "x"}
	manifest := object{
		"id": "acme", "name": text, "category": "support", "docs": "https://acme.example/<b>|x", "base_url": "https://acme.example",
		"connection": object{
			"fields": object{"site": object{"title": text, "enum": []any{text, object{"value": "b", "label": text}}}},
			"auth": []any{
				object{"kind": "bearer", "label": text, "help": text, "fields": object{"region": field}},
				object{
					"kind": "oauth2", "label": text, "help": text, "client_auth": "body", "scopes": []string{text},
					"authorize_url": "https://acme.example/authorize", "token_url": "https://acme.example/token", "app_fields": object{"extra": field},
				},
			},
			"hosts": []string{"acme.example"}, "test": object{"path": "/me"}, "learn": object{"label": "me"},
		},
		"rate": []any{object{"requests": 5, "every": "1s"}},
		"operations": object{
			"add": object{
				"title": text, "summary": text, "input": object{"name": input, "kind": object{"type": "string", "enum": []string{text, "`"}}, "code": object{"type": "string", "pattern": "a|`b\\|"}, "sizes": object{"type": "list", "items": object{"type": "string", "enum": []string{"s", "m"}}}},
				"request": object{"method": "POST", "path": "/things", "json": object{"name": "${{ input.name }}"}}, "rate": []any{object{"requests": 1, "every": "1m", "per": "input.name + '|`'"}},
			},
			"list_things": object{"title": text, "hidden": true, "request": object{"path": "/secret", "items": "body"}, "option": object{"value": "item.id", "label": "item.name"}},
		},
		"triggers": object{"thing": object{
			"title": text, "summary": text, "input": object{"name": input}, "poll": object{"operation": "list_things", "every": "1m"}, "key": "item.id",
		}},
	}
	tests, err := replay.Parse(encode(t, object{
		"operations": object{"add": []any{object{"name": "one", "input": object{"name": text}, "output": object{}}}},
		"triggers":   object{"thing": []any{object{"name": "one", "input": object{"name": text}, "found": []any{object{"key": "1", "payload": object{text: text}}}}}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := integration.Load(fstest.MapFS{"acme/integration.yaml": {Data: encode(t, manifest)}})
	if err != nil {
		t.Fatal(err)
	}
	i, _ := catalog.Find("acme")
	out, err := pageOf(catalog, i, tests, &replay.Recordings{Client: text, Without: map[string]string{"add": text, "triggers/thing": text, "list_things": "unseen"}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// encode returns JSON, which is YAML too.
func encode(t *testing.T, value any) []byte {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	fence        = regexp.MustCompile("^(`{3,})[a-z]*$")
	startOfBlock = regexp.MustCompile(`^(#+|[-+>]|\d+[.)])$`)
	// harmless matches what the text of a line can have: escaped characters, code, addresses,
	// and the links of the page itself.
	harmless = regexp.MustCompile("\\\\[[:punct:]]|`[^`|]*`|<https?://[^\\s<>|]+>|</?code>|\\[|\\]\\((#|\\.\\./|[a-z_]+\\.md)[^()]*\\)|\\*\\*Deprecated\\*\\*")
	markup   = regexp.MustCompile("[<`*~\\[\\]]|\\b_|_\\b|&[0-9A-Za-z]+;|javascript:[^a]")
)

// outline returns how the headings, items of lists and blocks of code of a page begin, and
// reports markup that the generator has not written.
func outline(t *testing.T, page string) []string {
	t.Helper()
	var out []string
	open, columns := "", 0
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		if found := fence.FindStringSubmatch(line); len(found) > 0 && (open == "" || found[1] == open && line == open) {
			if open = found[1]; line == found[1] && len(out) > 0 && out[len(out)-1] == "code" {
				open = ""
				out = append(out, "end")
			} else {
				out = append(out, "code")
			}
			continue
		}
		if open != "" {
			continue
		}
		kind, _, _ := strings.Cut(line, " ")
		bare := harmless.ReplaceAllString(line, "")
		switch {
		case line == "" || strings.HasPrefix(line, "<!-- Generated") || slices.Contains([]string{"<details>", "</details>", "<summary>Example</summary>"}, line):
			columns = 0
			continue
		case strings.HasPrefix(line, "|"):
			if count := strings.Count(bare, "|"); columns != 0 && count != columns {
				t.Errorf("a row has %d columns, want %d: %s", count-1, columns-1, line)
			} else {
				columns = count
			}
			kind = ""
		case !startOfBlock.MatchString(kind):
			kind = ""
		}
		if kind != "" {
			out = append(out, kind)
		}
		if found := markup.FindString(bare); found != "" {
			t.Errorf("%q is markup in %s", found, line)
		}
	}
	if open != "" {
		t.Error("a block of code does not end")
	}
	return out
}

// Text of a manifest, of tests and of recordings changes nothing in the structure of a
// page.
func TestPageEscapes(t *testing.T) {
	t.Parallel()
	want := outline(t, pageWith(t, "plain"))
	for _, text := range append([]string{hostile, "- item", "1. item", "# heading", "> quote", "a\\", "`", "|", "\\|", "<b>", "&lt;", "https://a.example/x_y_z|`<b>", "_a_ b_c"}, strings.Split(hostile, "\n")...) {
		if text == "" {
			continue
		}
		if diff := cmp.Diff(want, outline(t, pageWith(t, text))); diff != "" {
			t.Errorf("%q changes the page (-want +got)\n%s", text, diff)
		}
	}
	if count := len(want); count < 12 {
		t.Errorf("the page has the headings and blocks %q", want)
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	text := pageWith(t, "R&D: a_b *c* | &amp; https://a.example/x_y.")
	for _, part := range []string{
		"\n# R&D: a_b \\*c\\* &#124; \\&amp; https://a.example/x_y.\n", "\nR&D: a_b \\*c\\* &#124; \\&amp; <https://a.example/x_y>.\n",
		"\n- `acme.add`, `acme.thing`: R&D", "\n- at most 5 requests per second\n", "Rate limit: at most 1 request per minute for each <code>",
		"| `code` | string | Code. Must match <code>a&#124;&#96;b&#92;&#124;</code>. |\n", "[OAuth app](../connections.md#oauth-apps)",
		"| `sizes` | list of string | Sizes. Each is one of `s`, `m`. |\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the page lacks %q:\n%s", part, text)
		}
	}
	for _, part := range []string{"list_things", "unseen"} {
		if strings.Contains(text, part) {
			t.Errorf("the page has %q, which is hidden", part)
		}
	}
}
