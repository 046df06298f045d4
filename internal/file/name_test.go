package file_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/file"
)

func TestSafeName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"invoice.pdf": "invoice.pdf", "": "file", ".": "file", "..": "file", " . ": "file", "/": "file",
		"../../etc/passwd": "passwd", `C:\Users\ada\a b.txt`: "a b.txt", "a\x00b\r\n\tc": "abc",
		"Ünïcødé 文件.txt": "Ünïcødé 文件.txt", "evil\u202Egpj.exe": "evilgpj.exe", "bad\xffbytes": "badbytes", "  x  ": "x", ".env": ".env",
		strings.Repeat("a", 300) + ".txt": strings.Repeat("a", 251) + ".txt", strings.Repeat("é", 200): strings.Repeat("é", 127),
		"x." + strings.Repeat("e", 300): "x." + strings.Repeat("e", 253),
	} {
		if got := file.SafeName(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzSafeName(f *testing.F) {
	for _, seed := range []string{"a.txt", "../..", "\u202e", strings.Repeat("é", 300)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := file.SafeName(text)
		if got == "" || len(got) > 255 || !utf8.ValidString(got) || strings.ContainsAny(got, "/\\\x00\r\n") || got == "." || got == ".." {
			t.Errorf("%q: %q", text, got)
		}
		if again := file.SafeName(got); again != got {
			t.Errorf("%q: %q, then %q", text, got, again)
		}
	})
}

func TestSafeType(t *testing.T) {
	t.Parallel()
	const unknown = "application/octet-stream"
	for text, want := range map[string]string{
		"": unknown, "text/plain": "text/plain", "Text/HTML; Charset=UTF-8": "text/html; charset=UTF-8", "image": unknown, "a/b/c": unknown,
		"text/plain\r\nX: y": unknown, `text/plain; a="b\"c"`: `text/plain; a="b\"c"`, "text/plain; charset": "text/plain",
		"text/" + strings.Repeat("x", 300): unknown, "text/plain; a=" + strings.Repeat("x", 300): "text/plain",
	} {
		if got := file.SafeType(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
