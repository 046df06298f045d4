package account

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/stepmill/stepmill/internal/fault"
)

const (
	// RFC 5321 allows 254 bytes for an address and 64 before the @, and RFC 1035 63 for a label of
	// a domain.
	maxEmail = 254
	maxLocal = 64
	maxLabel = 63
)

// Email returns an address in the form in which it is stored and compared:
// trimmed, in lower case and NFC. It checks the syntax only, not whether the
// address receives mail.
func Email(pointer, text string) (string, error) {
	// Lower case first: the result of lowering some letters is not in NFC.
	email := norm.NFC.String(strings.ToLower(strings.TrimSpace(text)))
	local, domain, found := strings.Cut(email, "@")
	switch {
	case email == "":
		return "", fault.Field(pointer, "must not be empty")
	case len(email) > maxEmail:
		return "", fault.Field(pointer, "must have at most %d bytes", maxEmail)
	case !found || !utf8.ValidString(text) || !isLocal(local) || !isDomain(domain):
		return "", fault.Field(pointer, "is not an e-mail address such as ada@example.com")
	}
	return email, nil
}

func isLocal(local string) bool {
	return local != "" && len(local) <= maxLocal && !strings.ContainsFunc(local, func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.IsSpace(r) || strings.ContainsRune(`"(),:;<>@[\]`, r)
	})
}

func isDomain(domain string) bool {
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' || strings.ContainsFunc(label, notInLabel) {
			return false
		}
	}
	return true
}

func notInLabel(r rune) bool {
	return r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
}
