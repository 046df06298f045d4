package expr_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/expr"
)

func TestEscapeURL(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"https://a.example/x/${{ trigger.payload }}":               "https://a.example/x/..%2F%3Fq=1&r=%23%20%22",
		"https://a.example/x?q=${{ trigger.payload }}":             "https://a.example/x?q=..%2F%3Fq%3D1%26r%3D%23+%22",
		`https://a.example/${{ ".." }}/x`:                          "https://a.example/%2E%2E/x",
		`${{ "https://a.example" }}/x/${{ "a/b" }}`:                "https://a.example/x/a%2Fb",
		`https://a.example/${{ "x" }}?a=${{ "1&b=2" }}&c=${{ 3 }}`: "https://a.example/x?a=1%26b%3D2&c=3",
		`https://${{ "evil.example/" }}.a.example/`:                "https://evil.example%2F.a.example/",
		`https://a.example/${{ "x@y:z" }}`:                         "https://a.example/x@y:z",
		`https://user${{ "@evil.example/" }}`:                      "https://user@evil.example%2F",
	} {
		value, err := expr.CompileValue(map[string]any{"url": template, "body": template}, map[string]expr.Escape{"/url": expr.EscapeURL})
		if err != nil {
			t.Fatal(err)
		}
		got, err := value.Eval(&expr.Env{Trigger: expr.Trigger{Payload: `../?q=1&r=# "`}}, expr.Budget{})
		if err != nil {
			t.Fatal(err)
		}
		if url := got.(map[string]any)["url"]; url != want {
			t.Errorf("%s gives %s, not %s", template, url, want)
		}
	}
}

func TestEscapeXML(t *testing.T) {
	t.Parallel()
	payload := "<a b=\"c\">'&\x00"
	for template, want := range map[string]string{
		`<x>${{ trigger.payload }}</x>`:                 `<x>&lt;a b=&#34;c&#34;&gt;&#39;&amp;` + "\ufffd</x>",
		`<x y="${{ "a\"b" }}" n="${{ 1.5 }}"/>`:         `<x y="a&#34;b" n="1.5"/>`,
		`${{ "<a/>" }}<b/>`:                             `&lt;a/&gt;<b/>`,
		`${{ "<whole/>" }}`:                             `<whole/>`,
		`<x>${{ "Zürich" }}</x>`:                        `<x>Zürich</x>`,
		`<x><![CDATA[${{ "]]>" + "<script/>" }}]]></x>`: `<x><![CDATA[]]&gt;&lt;script/&gt;]]></x>`,
	} {
		value, err := expr.CompileValue(map[string]any{"xml": template}, map[string]expr.Escape{"/xml": expr.EscapeXML})
		if err != nil {
			t.Fatal(err)
		}
		got, err := value.Eval(&expr.Env{Trigger: expr.Trigger{Payload: payload}}, expr.Budget{})
		if err != nil {
			t.Fatal(err)
		}
		if document := got.(map[string]any)["xml"]; document != want {
			t.Errorf("%s gives %s, not %s", template, document, want)
		}
	}
}
