package webhook

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/workflow"
)

const (
	defaultTolerance = 5 * time.Minute
	maxTolerance     = time.Hour
)

// Verification is a compiled workflow.Verify.
type Verification struct {
	workflow.Verify
	Secret    *expr.Template
	Username  *expr.Template
	Tolerance time.Duration
}

func compileVerify(c *workflow.TriggerCompiler, v workflow.Verify) *Verification {
	out := &Verification{Verify: v}
	if !slices.Contains(workflow.Schemes(), v.Scheme) {
		c.ReportUnknown("/verify/scheme", v.Scheme, workflow.Schemes(), "must be one of %s", strings.Join(workflow.Schemes(), ", "))
		return out
	}
	allowed := schemeMembers(v.Scheme)
	for _, name := range v.Members() {
		if !slices.Contains(allowed, name) {
			c.Report("/verify/"+name, "", "the scheme %s does not take %s", v.Scheme, name)
		}
	}
	if v.Scheme == workflow.SchemeNone {
		return out
	}
	out.Secret = c.Credential("/verify/secret", v.Secret, true)
	if v.Scheme == workflow.SchemeBasic {
		out.Username = c.Credential("/verify/username", v.Username, false)
	}
	if v.Scheme == workflow.SchemeHMAC {
		checkSignature(c, v)
	}
	if v.Scheme == workflow.SchemeBearer && v.Header != "" && !headerName.MatchString(v.Header) {
		c.Report("/verify/header", "", "must be the name of the header that contains the token")
	}
	if v.Tolerance != "" {
		out.Tolerance = c.Duration("/verify/tolerance", v.Tolerance, maxTolerance)
	} else {
		out.Tolerance = defaultTolerance
	}
	return out
}

var (
	headerName  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")
	placeholder = regexp.MustCompile(`\{([^{}]*)\}`)
)

// The supported hash algorithms and encodings of a signature.
func algorithms() []string { return []string{"sha256", "sha512"} }
func encodings() []string  { return []string{"hex", "base64"} }

const signedBody = "{body}"

func checkSignature(c *workflow.TriggerCompiler, v workflow.Verify) {
	if !headerName.MatchString(v.Header) {
		c.Report("/verify/header", "", "must be the name of the header that contains the signature")
	}
	if v.Algorithm != "" && !slices.Contains(algorithms(), v.Algorithm) {
		c.Report("/verify/algorithm", "", "must be one of %s", strings.Join(algorithms(), ", "))
	}
	if v.Encoding != "" && !slices.Contains(encodings(), v.Encoding) {
		c.Report("/verify/encoding", "", "must be one of %s", strings.Join(encodings(), ", "))
	}
	if v.Timestamp != "" && !headerName.MatchString(v.Timestamp) {
		c.Report("/verify/timestamp", "", "must be the name of the header that contains the time")
	}
	if v.Tolerance != "" && v.Timestamp == "" {
		c.Report("/verify/tolerance", "add timestamp", "tolerance needs a header that contains the time of the call")
	}
	if v.Signed == "" {
		return
	}
	if strings.Count(v.Signed, signedBody) != 1 {
		c.Report("/verify/signed", "", "must contain {body} exactly once")
	}
	for _, found := range placeholder.FindAllStringSubmatch(v.Signed, -1) {
		if !headerName.MatchString(found[1]) {
			c.Report("/verify/signed", "", "%s is neither {body} nor a header name in braces", found[0])
		}
	}
	if v.Timestamp != "" && !strings.Contains(strings.ToLower(v.Signed), "{"+strings.ToLower(v.Timestamp)+"}") {
		c.Report("/verify/signed", "add {"+v.Timestamp+"}", "the timestamp must be part of what is signed, or anyone could change it")
	}
}

// schemeMembers returns the members that a scheme allows besides scheme.
func schemeMembers(scheme string) []string {
	switch scheme {
	case workflow.SchemeGitHub:
		return []string{"secret"}
	case workflow.SchemeBearer:
		return []string{"secret", "header"}
	case workflow.SchemeBasic:
		return []string{"secret", "username"}
	case workflow.SchemeStripe, workflow.SchemeSlack, workflow.SchemeStandard:
		return []string{"secret", "tolerance"}
	case workflow.SchemeHMAC:
		return []string{"secret", "header", "algorithm", "encoding", "prefix", "signed", "timestamp", "tolerance"}
	}
	return nil
}

func verifySchema() schema {
	text := func(title, description string) schema {
		return schema{"title": title, "description": description, "type": "string", "minLength": 1}
	}
	header := func(title, description string) schema {
		return schema{"title": title, "description": description, "type": "string", "pattern": headerName.String()}
	}
	choice := func(title, description string, names []string) schema {
		return schema{"title": title, "description": description, "type": "string", "enum": names, "default": names[0]}
	}
	return schema{
		"title": "Verify", "description": "How the trigger verifies who is calling.",
		"type": "object", "additionalProperties": false, "required": []string{"scheme"}, "allOf": schemeCases(),
		"properties": schema{
			"scheme": schema{"title": "Scheme", "description": "How calls are signed, or how the caller authenticates.", "type": "string", "enum": workflow.Schemes()},
			"secret": schema{
				"title": "Secret", "description": "The shared secret, as ${{ secrets.<name> }}.",
				"type": "string", "pattern": `\$\{\{`,
			},
			"username":  text("User name", "The user name of the scheme basic. The secret is the password."),
			"header":    header("Header", "The header that contains the signature, or for bearer the token. Default for bearer: Authorization."),
			"algorithm": choice("Algorithm", "The hash algorithm of the signature.", algorithms()),
			"encoding":  choice("Encoding", "How the signature is encoded.", encodings()),
			"prefix":    text("Prefix", "The text before the signature in its header, such as sha256=."),
			"signed":    text("Signed", "The signed text: {body} is the body, {name} the header of that name. Default {body}, preceded by the time and a dot if there is a timestamp."),
			"timestamp": header("Time", "The header that contains the time of the call, in Unix seconds."),
			"tolerance": workflow.DurationSchema("Tolerance", "How old a signed call may be. Default "+clock.FormatDuration(defaultTolerance)+", at most "+clock.FormatDuration(maxTolerance)+"."),
		},
	}
}

// schemeCases returns the required and allowed members of each scheme.
func schemeCases() []schema {
	var cases []schema
	for _, scheme := range workflow.Schemes() {
		allowed := schema{"scheme": true}
		for _, name := range schemeMembers(scheme) {
			allowed[name] = true
		}
		then := schema{"properties": allowed, "additionalProperties": false}
		switch scheme {
		case workflow.SchemeNone:
		case workflow.SchemeHMAC:
			then["required"] = []string{"secret", "header"}
		case workflow.SchemeBasic:
			then["required"] = []string{"secret", "username"}
		default:
			then["required"] = []string{"secret"}
		}
		cases = append(cases, schema{"if": schema{"properties": schema{"scheme": schema{"const": scheme}}, "required": []string{"scheme"}}, "then": then})
	}
	return cases
}
