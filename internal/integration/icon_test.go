package integration_test

import (
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
)

// svg returns an icon with something in its svg element, on the second line.
func svg(inside string) string {
	return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 24 24\">\n" + inside + "\n</svg>\n"
}

func TestCheckIcon(t *testing.T) {
	t.Parallel()
	const shape = `<path d="M0 0h4"/>`
	for _, tc := range []struct{ name, text, want string }{
		{"shapes", svg(`<g fill="none" stroke="#fff" stroke-width=".5"><rect x="1" y="-1" width="2.5" height="3" rx="1"/><circle cx="1" cy="1" r="2"/><polygon points="0,0 1,1 2 0"/>` + shape + `</g>`), ""},
		{"a script", svg(shape + `<script>alert(1)</script>`), "line 2:19: the element script is not allowed: use circle, ellipse, g, line, path, polygon, polyline, rect"},
		{"a style", svg(`<style>path{}</style>`), "line 2:1: the element style is not allowed"},
		{"a link", svg(`<a href="https://example.com">` + shape + `</a>`), "line 2:1: the element a is not allowed"},
		{"another image", svg(`<image href="data:image/png;base64,AA"/>`), "line 2:1: the element image is not allowed"},
		{"a reference", svg(`<use href="#x"/>`), "line 2:1: the element use is not allowed"},
		{"an svg in an svg", svg(`<svg/>`), "line 2:1: the element svg is not allowed"},
		{"an id", svg(`<path id="x" d="M0 0"/>`), "line 2:7: path cannot have the attribute id: it has d, fill, fill-opacity"},
		{"an event", svg(`<path d="M0 0" onload="alert(1)"/>`), "line 2:16: path cannot have the attribute onload"},
		{"a style attribute", svg(`<path d="M0 0" style="fill:red"/>`), "line 2:16: path cannot have the attribute style"},
		{"a prefixed attribute", svg(`<path d="M0 0" xml:base="x"/>`), "line 2:20: path cannot have the attribute"},
		{"a declared prefix", svg(`<path d="M0 0" xmlns:x="http://www.w3.org/2000/svg"/>`), "line 2:22: path cannot have the attribute xmlns:x"},
		{"an element of another language", svg(`<g xmlns="http://www.w3.org/1999/xhtml"><path d="M0 0"/></g>`), "line 2:1: the element g is not allowed"},
		{"an attribute twice", svg(`<path d="M0 0" d="M1 1"/>`), "line 2:7: the attribute d is there twice"},
		{"a function as a color", svg(`<path d="M0 0" fill="url(#a)"/>`), "line 2:16: the value of fill is not allowed: it must be none, or a color such as #3b6ea5"},
		{"a unit", svg(`<rect width="100%" height="4"/>`), "line 2:7: the value of width is not allowed: it must be a number without a unit"},
		{"an unknown word", svg(`<path d="M0 0" stroke-linecap="flat"/>`), "line 2:16: the value of stroke-linecap is not allowed: it must be butt or round or square"},
		{"a path that draws nothing", svg(`<path d="x"/>`), "line 2:7: the value of d is not allowed: it must be path data that begins with M"},
		{"an entity", svg(`<path d="M0 0" fill="&#35;fff"/>`), "line 2:22: has a character that is not allowed: an icon is printable ASCII without entities"},
		{"another alphabet", svg("<!-- ä -->"), "line 2:6: has a character that is not allowed"},
		{"a comment", svg("<!-- x -->" + shape), "line 2:1: has a comment, a declaration or an instruction"},
		{"a document type", "<!DOCTYPE svg>\n" + svg(shape), "line 1:1: has a comment, a declaration or an instruction"},
		{"a declaration", "<?xml version=\"1.0\"?>\n" + svg(shape), "line 1:1: has a comment, a declaration or an instruction"},
		{"text", svg(shape + " Hello"), "line 2:20: has text: an icon has shapes only"},
		{"another size", strings.Replace(svg(shape), "24 24", "16 16", 1), "line 1:41: the value of viewBox is not allowed: it must be 0 0 24 24"},
		{"no namespace", `<svg viewBox="0 0 24 24">` + shape + "</svg>", `line 1:1: the element svg needs xmlns="http://www.w3.org/2000/svg" and viewBox="0 0 24 24"`},
		{"not an svg", "<html/>", "line 1:1: the element html is outside of the svg element"},
		{"two images", svg(shape) + svg(shape), "line 4:1: the element svg is outside of the svg element"},
		{"an open element", svg("<g>" + shape), "line 3:7: is not well-formed XML: element <g> closed by </svg>"},
		{"no shapes", svg("<g></g>"), "line 1:1: has no shapes"},
		{"nothing", "", "line 1:1: has no shapes"},
		{"too long", svg(strings.Repeat(shape, 200)), "has 3669 bytes: an icon has at most 2 KiB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			problems := integration.CheckIcon([]byte(tc.text))
			got := ""
			if len(problems) > 0 {
				got = problems[0].Error()
			}
			if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
				t.Errorf("the problem is %q, want %q", got, tc.want)
			}
		})
	}
}

// FuzzCheckIcon checks that an icon without problems has none of what browsers act on.
func FuzzCheckIcon(f *testing.F) {
	f.Add(svg(`<g fill="none"><path d="M0 0h4"/></g>`))
	f.Add(svg(`<path d="M0 0" onload="x"/><a href="javascript:x"/>`))
	f.Add("<!DOCTYPE svg [<!ENTITY a \"b\">]>" + svg("&a;"))
	f.Fuzz(func(t *testing.T, text string) {
		if integration.CheckIcon([]byte(text)) != nil {
			return
		}
		for _, unwanted := range []string{"href", "script", "style", "url", "<!", "<?", "&", " id"} {
			if strings.Contains(text, unwanted) {
				t.Errorf("an icon may contain %q: %s", unwanted, text)
			}
		}
	})
}
