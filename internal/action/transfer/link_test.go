package transfer_test

import (
	"net/http"
	"testing"

	"github.com/stepmill/stepmill/internal/action/transfer"
)

func TestNextLink(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		header []string
		want   string
	}{
		"none":                           {nil, ""},
		"quoted":                         {[]string{`<https://a.example/?p=2>; rel="next"`}, "https://a.example/?p=2"},
		"a token":                        {[]string{`</p2>;rel=next`}, "/p2"},
		"among others":                   {[]string{`</p1>; rel="prev", </p3>; rel="next", </p9>; rel="last"`}, "/p3"},
		"in a second header":             {[]string{`</p1>; rel="prev"`, `</p3>; rel="next"`}, "/p3"},
		"several relations":              {[]string{`</p3>; rel="last NEXT"`}, "/p3"},
		"a name in capitals":             {[]string{`</p3>; REL = "next"`}, "/p3"},
		"commas in the target":           {[]string{`</p?a=1,2>; rel="next"`}, "/p?a=1,2"},
		"another relation in a title":    {[]string{`</p2>; title="x\"; rel=\"next"; rel="prev"`}, ""},
		"a link inside a title":          {[]string{`</p2>; title="a, </p3>; rel=next"; rel=prev`}, ""},
		"only the first relation counts": {[]string{`</p2>; rel="prev"; rel="next"`}, ""},
		"a link about something else":    {[]string{`</p2>; rel="next"; anchor="#part"`, `</p3>; rel="next"`}, "/p3"},
		"a parameter without a value":    {[]string{`</p2>; crossorigin; rel="next"`}, "/p2"},
		"an empty target":                {[]string{`<>; rel="next"`}, ""},
		"not closed":                     {[]string{`</p2; rel="next"`}, ""},
		"a quote that is not closed":     {[]string{`</p2>; rel="next`}, "/p2"},
	} {
		if got := transfer.NextLink(http.Header{"Link": test.header}); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func FuzzNextLink(f *testing.F) {
	f.Add(`</p1>; rel="prev", </p3>; rel="next"`)
	f.Add(`</p2>; title="x\"; rel=\"next"; rel="prev`)
	f.Fuzz(func(_ *testing.T, header string) { transfer.NextLink(http.Header{"Link": {header}}) })
}
