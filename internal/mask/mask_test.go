package mask_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/test/lane"
)

func TestText(t *testing.T) {
	t.Parallel()
	const pass = "pä$$/w?rd <1>"
	basic := base64.StdEncoding.EncodeToString([]byte("user:hunter22"))
	for _, tc := range []struct {
		name   string
		values []string
		text   string
		want   string
	}{
		{"no values", nil, "hunter22", "hunter22"},
		{"no value in the text", []string{"hunter22"}, "hunter2", "hunter2"},
		{"the text is the value", []string{"hunter22"}, "hunter22", "***"},
		{"inside of text", []string{"hunter22"}, "a hunter22 b", "a *** b"},
		{"several times", []string{"hunter22"}, "hunter22 hunter22", "*** ***"},
		{"adjacent values are masked as one", []string{"hunter22", "swordfish"}, "<hunter22swordfish>", "<***>"},
		{"a value in a value", []string{"fish", "swordfish"}, "swordfish fish", "*** ***"},
		{"a value in a value, the other way round", []string{"swordfish", "sword"}, "swordfish swords", "*** ***s"},
		{"values that overlap", []string{"abcdef", "defghi"}, "xabcdefghix", "x***x"},
		{"a value that overlaps itself", []string{"abab"}, "xabababx", "x***x"},
		{"too short to be masked", []string{"abc", ""}, "abc", "abc"},
		{"four characters", []string{"äöüß"}, "x äöüß", "x ***"},
		{"case matters", []string{"hunter22"}, "Hunter22", "Hunter22"},
		{"in JSON", []string{pass}, `{"a": "pä$$/w?rd <1>"}`, `{"a": "***"}`},
		{"in JSON for HTML", []string{pass}, `pä$$/w?rd \u003c1\u003e`, `***`},
		{"in JSON in ASCII", []string{pass}, `p\u00e4$$/w?rd <1>`, `***`},
		{"in JSON with slashes escaped", []string{pass}, `p\u00e4$$\/w?rd <1>`, `***`},
		{"in JSON beyond the basic plane", []string{"key🔑x"}, `key\ud83d\udd11x`, `***`},
		{"quotes and lines in JSON", []string{"a\"b\nc"}, `"a\"b\nc"`, `"***"`},
		{"in a query", []string{pass}, "?p=" + url.QueryEscape(pass) + "&x", "?p=***&x"},
		{"in a path", []string{pass}, "/" + url.PathEscape(pass) + "/", "/***/"},
		{"in a query, lower-case escapes", []string{"a/b/c/d"}, "a%2fb%2fc%2fd", "***"},
		{"as browsers escape", []string{"a b(c)!"}, "a%20b(c)!", "***"},
		{"in JSON with any character escaped", []string{"a/b+c=d"}, `a\u002fb\u002Bc\u003dd a\/b\u002bc=d`, `*** ***`},
		{"in JSON in upper case", []string{pass}, `p\u00E4$$\u002Fw?rd <1>`, `***`},
		{"in a query, some characters escaped", []string{"a/b+c=d"}, "a/b%2Bc=d a%2fb+c%3dd a%2Fb%2bc%3Dd", "*** *** ***"},
		{"in a form", []string{"a b+c/d"}, "x=a+b%2Bc%2Fd&y=a%20b+c/d", "x=***&y=***"},
		{"in HTML", []string{`a<b>&"c'`}, html.EscapeString(`a<b>&"c'`) + " a&lt;b&gt;&amp;&quot;c&apos; a&lt;b>&amp;\"c'", "*** *** ***"},
		{"in HTML with a name", []string{"zwölf/elf+1"}, "zw&ouml;lf&sol;elf&plus;1", "***"},
		{"in decimal references", []string{"a/b+c"}, "&#97;&#47;&#98;&#43;&#99; a&#047;b&#43c", "*** ***"},
		{"in hexadecimal references", []string{"a/b+c"}, "&#x61;&#x2f;&#x62;&#X2B;&#x63; a&#x0002F;b&#x2B;c", "*** ***"},
		{"a reference beyond the basic plane", []string{"key🔑x"}, "key&#128273;x key&#x1F511;x", "*** ***"},
		{"base64 with escapes", []string{"\xc3\xbf\xc3\xbe?>~"}, `w7\/Dvj8+fg== w7%2FDvj8%2bfg%3D%3D w7&#47;Dvj8&#43;fg&#61;&#61;`, "*** *** ***"},
		{"escapes around a value stay", []string{"hunter22"}, `\"hunter22\" %22hunter22%22 &quot;hunter22&quot;`, `\"***\" %22***%22 &quot;***&quot;`},
		{"what is no escape", []string{"hunter22"}, `\ \u00 \ud83d\x hunter22 % %4 %zz & &#; &#x; &#xffffff; &none; &`, `\ \u00 \ud83d\x *** % %4 %zz & &#; &#x; &#xffffff; &none; &`},
		{"in hex", []string{"hunter22"}, hex.EncodeToString([]byte("hunter22")), "***"},
		{"in upper-case hex", []string{"hunter22"}, strings.ToUpper(hex.EncodeToString([]byte("hunter22"))), "***"},
		{"in base64", []string{"hunter22"}, base64.StdEncoding.EncodeToString([]byte("hunter22")), "***"},
		{"in base64 without padding", []string{"hunter22"}, base64.RawURLEncoding.EncodeToString([]byte("hunter22")), "***"},
		{"at the end of base64", []string{"hunter22"}, "Basic " + basic, "Basic " + basic[:7] + "***"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := mask.New(tc.values).Text(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	values := []string{"hunter22", "12345678", "true", "line\nbreak", `"},{"`}
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", `{"a": [1, "x", null]}`, `{"a": [1, "x", null]}`},
		{"a string", `{"a":"my hunter22!"}`, `{"a":"my ***!"}`},
		{"the name of a member", `{"hunter22":1}`, `{"***":1}`},
		{"an escaped string", `["\u0068unter22\t<"]`, `["***\t<"]`},
		{"a line break", `["line\nbreak"]`, `["***"]`},
		{"a number", `[12345678, 1, 123456789]`, `["***", 1, "***"]`},
		{"a truth value", `{"a":true,"b":false}`, `{"a":"***","b":false}`},
		{"JSON in JSON", `["{\"a\":\"line\\nbreak\"}"]`, `["{\"a\":\"***\"}"]`},
		{"structure is not a value", `[{"a":"x"},{"b":"y"}]`, `[{"a":"x"},{"b":"y"}]`},
		{"invalid JSON", `{"a": "hunter22`, `{"a": "***`},
		{"whitespace is preserved", " [ \"hunter22\" ,\n2 ] ", " [ \"***\" ,\n2 ] "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, string(mask.New(values).JSON([]byte(tc.text)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// encodings are the encodings in which values are found, each with the text
// around the value encoded too.
var encodings = map[string]func(before, value, after string) string{
	"plain": func(before, value, after string) string { return before + value + after },
	"query": func(before, value, after string) string { return url.QueryEscape(before + value + after) },
	"path":  func(before, value, after string) string { return url.PathEscape(before + value + after) },
	"JSON": func(before, value, after string) string {
		out, _ := json.Marshal(before + value + after)
		return string(out)
	},
	"JSON in ASCII": func(before, value, after string) string {
		var out strings.Builder
		for _, r := range utf16.Encode([]rune(before + value + after)) {
			fmt.Fprintf(&out, `\u%04X`, r)
		}
		return out.String()
	},
	"HTML": func(before, value, after string) string { return html.EscapeString(before + value + after) },
	"XML": func(before, value, after string) string {
		var out bytes.Buffer
		_ = xml.EscapeText(&out, []byte(before+value+after))
		return out.String()
	},
	"references": func(before, value, after string) string {
		var out strings.Builder
		for i, r := range []rune(before + value + after) {
			fmt.Fprintf(&out, []string{"&#%d;", "&#x%x;", "&#X%X;"}[i%3], r)
		}
		return out.String()
	},
	"hex": func(before, value, after string) string { return hex.EncodeToString([]byte(before + value + after)) },
	"HEX": func(before, value, after string) string { return fmt.Sprintf("%X", before+value+after) },
	"base64": func(before, value, after string) string {
		return base64.StdEncoding.EncodeToString([]byte(before + value + after))
	},
	"base64url": func(before, value, after string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(before + value + after))
	},
}

// Random values use few characters, so that they contain each other, overlap and
// share prefixes. They have no asterisk, which would be ambiguous next to a
// replacement.
var (
	valueOf = rapid.StringOfN(rapid.RuneFrom([]rune(`ab1 "/+ä<`+"\n🔑")), mask.MinLength, 12, -1)
	longOf  = rapid.StringOfN(rapid.RuneFrom([]rune(`ab`)), 20, 90, -1)
	textOf  = rapid.StringOfN(rapid.RuneFrom([]rune(`ab1 "/+ä<xyz%\`+"\n🔑")), 0, 40, -1)
)

func TestMasksEveryEncoding(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(valueOf, longOf), 1, 5).Draw(t, "values")
		value := rapid.SampledFrom(values).Draw(t, "value")
		before, after := textOf.Draw(t, "before"), textOf.Draw(t, "after")
		m := mask.New(values)
		for name, encode := range encodings {
			text := encode(before, value, after)
			masked := m.Text(text)
			if masked == text {
				t.Errorf("%s: nothing is masked in %q", name, text)
			}
			for part := range strings.SplitSeq(masked, mask.Replacement) {
				if m.Text(part) != part {
					t.Errorf("%s: %q has something left to mask", name, masked)
				}
			}
			escapes := slices.Contains([]string{"JSON", "path", "query", "HTML", "XML"}, name)
			if !escapes && strings.Contains(masked, encode("", value, "")) {
				t.Errorf("%s: %q survives in %q", name, value, masked)
			}
		}
	})
}

func TestJSONStaysJSON(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(valueOf, rapid.StringMatching(`[0-9]{4,6}`)), 1, 4).Draw(t, "values")
		str := rapid.OneOf(textOf, rapid.SampledFrom(values))
		tree := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			tree[str.Draw(t, "name")] = []any{str.Draw(t, "text"), rapid.Int().Draw(t, "number"), true, nil, map[string]any{str.Draw(t, "inner"): str.Draw(t, "deep")}}
		}
		raw, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		m := mask.New(values)
		masked := m.JSON(raw)
		var decoded any
		exact := json.NewDecoder(bytes.NewReader(masked))
		exact.UseNumber()
		if err := exact.Decode(&decoded); err != nil || !json.Valid(masked) {
			t.Fatalf("%s: %v", masked, err)
		}
		each(decoded, func(text string) {
			for _, value := range values {
				if strings.Contains(text, value) {
					t.Errorf("%q survives in %s", value, masked)
				}
			}
		})
		if !bytes.Equal(m.JSON(masked), masked) && !strings.Contains(strings.Join(values, ""), "*") {
			t.Errorf("%s has something left to mask", masked)
		}
	})
}

// each visits every string, name and literal of decoded JSON.
func each(value any, visit func(string)) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			visit(name)
			each(member, visit)
		}
	case []any:
		for _, item := range v {
			each(item, visit)
		}
	case string:
		visit(v)
	case json.Number:
		visit(v.String())
	}
}

func TestLeavesOtherTextUnchanged(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("abc \"\\\n🔑"))).Draw(t, "text")
		m := mask.New([]string{"zzzz-not-there", strings.Repeat("z", 100), "äöüß"})
		if got := m.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
		if got := m.JSON([]byte(text)); string(got) != text {
			t.Errorf("%q became %q", text, got)
		}
	})
}

func TestJoin(t *testing.T) {
	t.Parallel()
	one, two := mask.New([]string{"abcdef"}), mask.New([]string{"defghi", "with space"})
	if mask.Join() != nil || mask.Join(nil, nil) != nil || mask.Join(nil, one, nil, one) != one {
		t.Error("joining one masker makes another one")
	}
	both := mask.Join(one, nil, two)
	if mask.Join(one, both) != both || mask.Join(both, two) != both {
		t.Error("joining what is there already makes another masker")
	}
	if got := both.Text("xabcdefghix with+space"); got != "x***x ***" {
		t.Errorf("got %q", got)
	}
	if got := one.Text("defghi"); got != "defghi" {
		t.Errorf("the first one has changed: %q", got)
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	m := mask.New([]string{"hunter22", "12345678"})
	given := map[string]any{"a": []any{"my hunter22", 12345678, 7, nil, true, json.Number("0.12345678")}, "hunter22": map[string]any{"x": "y"}}
	want := map[string]any{"a": []any{"my ***", "***", 7, nil, true, "***"}, "***": map[string]any{"x": "y"}}
	if diff := cmp.Diff(any(want), m.Value(given)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if given["a"].([]any)[0] != "my hunter22" {
		t.Error("the given value has changed")
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	c := mask.NewCache(1 << 20)
	one := c.Of("ws_1", []string{"hunter22", "swordfish"})
	if c.Of("ws_1", []string{"swordfish", "hunter22", "hunter22"}) != one {
		t.Error("the masker was built again")
	}
	if c.Of("ws_2", []string{"hunter22", "swordfish"}) == one {
		t.Error("workspaces share a masker")
	}
	if got := c.Of("ws_1", []string{"hunter22s", "wordfish"}).Text("swordfish"); got != "s***" {
		t.Errorf("another masker masks %q", got)
	}
	if c.Of("ws_1", nil) != nil || c.Of("ws_1", []string{"abc"}) != nil {
		t.Error("there is a masker for nothing")
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := mask.NewCache(100 << 10)
	first := c.Of("ws_1", []string{"hunter22"})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 100 {
				value := fmt.Sprintf("secret-%d-%d", i, j)
				if c.Of("ws_1", []string{value}).Text(value) != mask.Replacement {
					t.Errorf("%s is not masked", value)
				}
			}
		})
	}
	all.Wait()
	if size := c.Size(); size > 100<<10 || size < 50<<10 {
		t.Errorf("the cache has %d bytes", size)
	}
	if got := c.Of("ws_1", []string{"hunter22"}).Text("hunter22"); got != first.Text("hunter22") {
		t.Errorf("got %q", got)
	}
}

// Text with many near matches of a long value is as fast as any other.
func TestLongValuesAreMaskedInLinearTime(t *testing.T) {
	t.Parallel()
	value := strings.Repeat("a", 60_000) + "b"
	m := mask.New([]string{value})
	text := strings.Repeat("a", 1<<20)
	if m.Text(text) != text {
		t.Error("something was masked")
	}
	if got := m.Text(text + "b!"); got != text[60_000:]+mask.Replacement+"!" {
		t.Errorf("got %d bytes", len(got))
	}
	encoded := base64.StdEncoding.EncodeToString([]byte("id:" + value))
	if got := m.Text(encoded); got != encoded[:4]+mask.Replacement {
		t.Errorf("got %d bytes", len(got))
	}
}

func FuzzMask(f *testing.F) {
	f.Add("hunter22", "hunter", "my hunter22", "!")
	f.Add("a\"b\\c", "\"b\\c", "{\"x\":\"", "\"}")
	f.Fuzz(func(t *testing.T, one, two, before, after string) {
		values := []string{strings.ToValidUTF8(one, "?"), strings.ToValidUTF8(two, "?")}
		m := mask.New(values)
		raw, err := json.Marshal(map[string]any{before + one: two + after, "n": []string{one, two, before, after}})
		if err != nil {
			t.Fatal(err)
		}
		masked := m.JSON(raw)
		if !json.Valid(masked) {
			t.Fatalf("%s became %s", raw, masked)
		}
		for _, value := range values {
			if len([]rune(value)) < mask.MinLength || strings.Contains(value, "*") {
				continue
			}
			if text := m.Text(before + value + after); strings.Contains(text, value) {
				t.Errorf("%q survives in %q", value, text)
			}
			var decoded any
			if err := json.Unmarshal(masked, &decoded); err != nil {
				t.Fatal(err)
			}
			each(decoded, func(text string) {
				if strings.Contains(text, value) {
					t.Errorf("%q survives in %s", value, masked)
				}
			})
		}
	})
}

func BenchmarkText(b *testing.B) {
	var values []string
	for i := range 20 {
		values = append(values, fmt.Sprintf("secret-%02d-%s", i, strings.Repeat("xY7", 8)))
	}
	m := mask.New(values)
	text := strings.Repeat(`{"id": 4711, "name": "Ada Lovelace", "note": "nothing to see"} `, 1<<20/63)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if m.Text(text) != text {
			b.Fatal("something was masked")
		}
	}
}

func BenchmarkJSON(b *testing.B) {
	m := mask.New([]string{"secret-one-1234", "secret-two-5678"})
	text := []byte("[" + strings.Repeat(`{"id": 4711, "name": "Ada \"Lovelace\"", "note": "nothing to see"},`, 1<<20/68) + "1]")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if len(m.JSON(text)) != len(text) {
			b.Fatal("something was masked")
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		mask.New([]string{"a-usual-api-key-of-40-characters-xxxxxxx", "another"})
	}
}

// BenchmarkNewLarge builds maskers for the secrets that a connection can have.
func BenchmarkNewLarge(b *testing.B) {
	for _, bc := range []struct {
		name          string
		count, length int
	}{
		{"one of 40 bytes", 1, 40},
		{"one of 2.4 KiB", 1, 2458},
		{"one of 64 KiB", 1, 64 << 10},
		{"32 of 8 KiB", 32, 8 << 10},
	} {
		b.Run(bc.name, func(b *testing.B) {
			values := make([]string, bc.count)
			for i := range values {
				values[i] = fmt.Sprintf("%04d%s", i, strings.Repeat("xY7/+_-q", bc.length/8))[:bc.length]
			}
			for b.Loop() {
				if mask.New(values) == nil {
					b.Fatal("there is nothing to mask")
				}
			}
		})
	}
}

// BenchmarkCache is what masking costs each step of a run.
func BenchmarkCache(b *testing.B) {
	for _, length := range []int{40, 2458, 64 << 10} {
		b.Run(fmt.Sprintf("%d bytes", length), func(b *testing.B) {
			c, values := mask.NewCache(1<<20), []string{strings.Repeat("xY7/+_-q", length/8+1)[:length]}
			for b.Loop() {
				if c.Of("ws_1", values) == nil {
					b.Fatal("there is nothing to mask")
				}
			}
		})
	}
}
