package file

import (
	"errors"
	"mime"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName = 255 // in bytes
	maxType = 255
	// maxExtension is the longest extension that a shortened name keeps.
	maxExtension = 32

	defaultName = "file"
	defaultType = "application/octet-stream"
)

// SafeName returns a name that is safe as the name of a file: without a path and
// characters that are invisible or control something, at most 255 bytes and never empty.
func SafeName(text string) string {
	text = text[strings.LastIndexAny(text, `/\`)+1:]
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return -1
		}
		return r
	}, text)
	text = shorten(strings.TrimSpace(text))
	if strings.Trim(text, ". ") == "" {
		return defaultName
	}
	return text
}

// shorten cuts a name that is too long and keeps its extension.
func shorten(name string) string {
	if len(name) <= maxName {
		return name
	}
	extension := path.Ext(name)
	if len(extension) > maxExtension {
		extension = ""
	}
	cut := maxName - len(extension)
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + extension
}

// SafeType returns a media type in its usual form. What is not one becomes
// application/octet-stream.
func SafeType(text string) string {
	kind, parameters, err := mime.ParseMediaType(text)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || !strings.Contains(kind, "/") {
		return defaultType
	}
	formatted := mime.FormatMediaType(kind, parameters)
	if formatted == "" || len(formatted) > maxType {
		formatted = kind
	}
	if len(formatted) > maxType {
		return defaultType
	}
	return formatted
}
