package integration

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// Field is a value that people enter.
type Field struct {
	Name     string
	Title    string
	Help     string
	Secret   bool
	Optional bool
	Default  string
	Enum     []Choice
	// Pattern is a regular expression that the whole value must match.
	Pattern string
	// Format is one of the formats, or "".
	Format  string
	Example string

	pattern *regexp.Regexp
}

// Choice is a value of an enum with what people see.
type Choice struct {
	Value string
	Label string
}

// The formats of fields.
const (
	FormatHost      = "host"       // a host name, optionally with a port
	FormatHostLabel = "host_label" // one part of a host name, such as a subdomain
	FormatJSON      = "json"       // a JSON object, such as a key file
	FormatPEM       = "pem"        // a certificate or a key in PEM
	FormatServices  = "services"   // ids of integrations that use the connection, separated by spaces
)

// Formats returns the formats of fields.
func Formats() []string {
	return []string{FormatHost, FormatHostLabel, FormatJSON, FormatPEM, FormatServices}
}

// The maximum sizes of values in bytes, and the maximum number of secrets of a connection. Those of
// secrets are limited because the time to build a masker grows with them.
const (
	maxValue   = 16 << 10
	maxSecret  = 64 << 10
	MaxSecrets = 32
)

var hostLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Check reports what is wrong with a value, in words that follow the name of the
// field: "must be …". The message never contains the value. An empty value is one
// that was not entered.
func (f *Field) Check(value string) error {
	limit := maxValue
	if f.Secret {
		limit = maxSecret
	}
	switch {
	case value == "" && (f.Optional || f.Default != ""):
		return nil
	case value == "":
		return errors.New("is required")
	case len(value) > limit:
		return fmt.Errorf("must be at most %d KiB long", limit>>10)
	case !utf8.ValidString(value):
		return errors.New("must be valid UTF-8")
	case f.Format != FormatJSON && f.Format != FormatPEM && strings.ContainsFunc(value, unicode.IsControl):
		return errors.New("must be a single line without control characters")
	case len(f.Enum) > 0 && f.Format != FormatServices && !f.allows(value):
		return fmt.Errorf("must be one of %s", f.choices())
	case f.pattern != nil && !f.pattern.MatchString(value):
		return fmt.Errorf("must have the form %s%s", f.Pattern, f.suchAs())
	}
	return f.checkFormat(value)
}

func (f *Field) checkFormat(value string) error {
	switch f.Format {
	case FormatHost:
		if !isHost(strings.ToLower(value)) {
			return fmt.Errorf("must be a host name%s, without https:// and path", f.suchAs())
		}
	case FormatHostLabel:
		if !hostLabel.MatchString(strings.ToLower(value)) {
			return fmt.Errorf("must be a single part of a host name%s: letters, digits and hyphens", f.suchAs())
		}
	case FormatJSON:
		if strictjson.Check([]byte(value)) != nil || !strings.HasPrefix(strings.TrimSpace(value), "{") {
			return errors.New("must be a JSON object: paste the whole content of the file")
		}
	case FormatServices:
		if slices.ContainsFunc(splitServices(value), func(id string) bool { return !f.allows(id) }) {
			return fmt.Errorf("must be one or more of %s, separated by spaces", f.choices())
		}
	case FormatPEM:
		if !strings.Contains(value, "-----BEGIN ") {
			return errors.New("must be in PEM format, which begins with -----BEGIN: paste the whole content of the file")
		}
	}
	return nil
}

// isChecked reports whether Check restricts the characters of a value.
func (f *Field) isChecked() bool {
	return len(f.Enum) > 0 || f.pattern != nil || f.Format == FormatHost || f.Format == FormatHostLabel
}

func (f *Field) allows(value string) bool {
	for _, choice := range f.Enum {
		if choice.Value == value {
			return true
		}
	}
	return false
}

func (f *Field) choices() string {
	values := make([]string, len(f.Enum))
	for i, choice := range f.Enum {
		values[i] = choice.Value
	}
	return strings.Join(values, ", ")
}

func (f *Field) suchAs() string {
	if f.Example == "" {
		return ""
	}
	return ", such as " + f.Example
}
