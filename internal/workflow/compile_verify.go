package workflow

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/expr"
)

const (
	defaultTolerance = 5 * time.Minute
	maxTolerance     = time.Hour
)

func webhookMethods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}

func (c *compiler) compileWebhook(at string, p *CompiledTrigger) {
	if p.Methods != nil && len(p.Methods) == 0 {
		c.report(at+"/methods", "omit it to accept POST", "must name at least one method")
	}
	c.checkUnique(at+"/methods", p.Methods)
	for i, method := range p.Methods {
		if !slices.Contains(webhookMethods(), method) {
			c.report(fmt.Sprintf("%s/methods/%d", at, i), "", "must be one of %s", strings.Join(webhookMethods(), ", "))
		}
	}
	if p.Methods == nil {
		p.Methods = []string{http.MethodPost}
	}
	if p.Respond != "" && p.Respond != RespondNow && p.Respond != RespondResult {
		c.report(at+"/respond", "", "must be now or result")
	}
	p.PerMinute = int(p.Rate)
	if p.Rate == 0 {
		p.PerMinute = DefaultRate
	}
	if p.Rate > maxRate {
		c.report(at+"/rate", "", "must be at most %d", maxRate)
	}
	if p.Dedupe != "" {
		p.DedupeKey = c.compileStoredTemplate(at+"/dedupe", p.Dedupe)
	}
	if p.Verify != nil {
		p.Verification = c.compileVerify(at+"/verify", *p.Verify)
	}
}

// compileStoredTemplate compiles text that is evaluated before a run starts and
// stored in plain text. It can read only the call itself.
func (c *compiler) compileStoredTemplate(at, source string) *expr.Template {
	compiled, err := expr.CompileTemplate(source)
	if err != nil {
		c.reportExpr(at, err)
		return nil
	}
	refs := c.rejectSteps(at, compiled.Refs())
	if len(refs.Secrets) > 0 {
		c.report(at, "", "a secret cannot be used here: the result is stored in plain text")
	}
	if len(refs.Vars) > 0 || refs.AllVars {
		c.report(at, "use trigger", "variables cannot be used here")
	}
	refs.Secrets, refs.Vars, refs.AllVars = nil, nil, false
	c.checkRefs(at, refs, scope{})
	return compiled
}

func (c *compiler) compileVerify(at string, v Verify) *Verification {
	out := &Verification{Verify: v}
	if !slices.Contains(Schemes(), v.Scheme) {
		c.report(at+"/scheme", didYouMean(v.Scheme, Schemes()), "must be one of %s", strings.Join(Schemes(), ", "))
		return out
	}
	allowed := schemeMembers(v.Scheme)
	for _, name := range v.members() {
		if !slices.Contains(allowed, name) {
			c.report(at+"/"+name, "", "the scheme %s does not take %s", v.Scheme, name)
		}
	}
	if v.Scheme == SchemeNone {
		return out
	}
	out.Secret = c.compileCredential(at+"/secret", v.Secret, true)
	if v.Scheme == SchemeBasic {
		out.Username = c.compileCredential(at+"/username", v.Username, false)
	}
	if v.Scheme == SchemeHMAC {
		c.checkSignature(at, v)
	}
	if v.Scheme == SchemeBearer && v.Header != "" && !headerName.MatchString(v.Header) {
		c.report(at+"/header", "", "must be the name of the header that contains the token")
	}
	if v.Tolerance != "" {
		out.Tolerance = c.parseDuration(at+"/tolerance", v.Tolerance, maxTolerance)
	} else {
		out.Tolerance = defaultTolerance
	}
	return out
}

// compileCredential compiles a credential of the caller. A confidential one must
// come from a secret, so that it is not part of the definition.
func (c *compiler) compileCredential(at, source string, secret bool) *expr.Template {
	if source == "" {
		c.report(at, "", "is required")
		return nil
	}
	compiled, err := expr.CompileTemplate(source)
	if err != nil {
		c.reportExpr(at, err)
		return nil
	}
	refs := compiled.Refs()
	if secret && len(refs.Secrets) == 0 {
		c.report(at, "store it as a secret and write ${{ secrets.<name> }}", "must refer to a secret")
	}
	c.checkRefs(at, c.rejectSteps(at, refs), scope{})
	return compiled
}

var (
	headerName  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")
	placeholder = regexp.MustCompile(`\{([^{}]*)\}`)
)

// HeaderName reports whether name is a valid header name.
func HeaderName(name string) bool { return headerName.MatchString(name) }

// The supported hash algorithms and encodings of a signature.
func algorithms() []string { return []string{"sha256", "sha512"} }
func encodings() []string  { return []string{"hex", "base64"} }

const signedBody = "{body}"

func (c *compiler) checkSignature(at string, v Verify) {
	if !headerName.MatchString(v.Header) {
		c.report(at+"/header", "", "must be the name of the header that contains the signature")
	}
	if v.Algorithm != "" && !slices.Contains(algorithms(), v.Algorithm) {
		c.report(at+"/algorithm", "", "must be one of %s", strings.Join(algorithms(), ", "))
	}
	if v.Encoding != "" && !slices.Contains(encodings(), v.Encoding) {
		c.report(at+"/encoding", "", "must be one of %s", strings.Join(encodings(), ", "))
	}
	if v.Timestamp != "" && !headerName.MatchString(v.Timestamp) {
		c.report(at+"/timestamp", "", "must be the name of the header that contains the time")
	}
	if v.Tolerance != "" && v.Timestamp == "" {
		c.report(at+"/tolerance", "add timestamp", "tolerance needs a header that contains the time of the call")
	}
	if v.Signed == "" {
		return
	}
	if strings.Count(v.Signed, signedBody) != 1 {
		c.report(at+"/signed", "", "must contain {body} exactly once")
	}
	for _, found := range placeholder.FindAllStringSubmatch(v.Signed, -1) {
		if !headerName.MatchString(found[1]) {
			c.report(at+"/signed", "", "%s is neither {body} nor a header name in braces", found[0])
		}
	}
	if v.Timestamp != "" && !strings.Contains(strings.ToLower(v.Signed), "{"+strings.ToLower(v.Timestamp)+"}") {
		c.report(at+"/signed", "add {"+v.Timestamp+"}", "the timestamp must be part of what is signed, or anyone could change it")
	}
}
