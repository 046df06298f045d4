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

func hookMethods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}

func (c *compiler) compileWebhook(at string, p *PlannedTrigger) {
	if p.Methods != nil && len(p.Methods) == 0 {
		c.report(at+"/methods", "leave it out for POST", "names at least one method")
	}
	c.checkOnce(at+"/methods", p.Methods)
	for i, method := range p.Methods {
		if !slices.Contains(hookMethods(), method) {
			c.report(fmt.Sprintf("%s/methods/%d", at, i), "", "must be one of %s", strings.Join(hookMethods(), ", "))
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
		p.DedupeKey = c.template(at+"/dedupe", p.Dedupe)
	}
	if p.Verify != nil {
		p.Verification = c.compileVerify(at+"/verify", *p.Verify)
	}
}

// template compiles text that is worked out before a run starts and is kept in
// the open: from what came with the call alone.
func (c *compiler) template(at, source string) *expr.Template {
	compiled, err := expr.CompileTemplate(source)
	if err != nil {
		c.reportExpr(at, err)
		return nil
	}
	refs := c.refuseSteps(at, compiled.Refs())
	if len(refs.Secrets) > 0 {
		c.report(at, "", "a secret cannot be used here: what comes out is kept in the open")
	}
	if len(refs.Vars) > 0 || refs.AllVars {
		c.report(at, "use trigger", "variables cannot be used here")
	}
	refs.Secrets, refs.Vars, refs.AllVars = nil, nil, false
	c.checkRefs(at, refs, level{})
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
			c.report(at+"/"+name, "", "the scheme %s has no %s", v.Scheme, name)
		}
	}
	if v.Scheme == SchemeNone {
		return out
	}
	out.Secret = c.credential(at+"/secret", v.Secret, true)
	if v.Scheme == SchemeBasic {
		out.Username = c.credential(at+"/username", v.Username, false)
	}
	if v.Scheme == SchemeHMAC {
		c.checkSignature(at, v)
	}
	if v.Scheme == SchemeBearer && v.Header != "" && !headerName.MatchString(v.Header) {
		c.report(at+"/header", "", "must be the name of the header that has the token")
	}
	if v.Tolerance != "" {
		out.Tolerance = c.length(at+"/tolerance", v.Tolerance, maxTolerance)
	} else {
		out.Tolerance = defaultTolerance
	}
	return out
}

// credential compiles what a caller is known by. What has to stay secret is not
// written into a workflow.
func (c *compiler) credential(at, source string, secret bool) *expr.Template {
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
		c.report(at, "keep it as a secret and write ${{ secrets.<name> }}", "must refer to a secret")
	}
	c.checkRefs(at, c.refuseSteps(at, refs), level{})
	return compiled
}

var (
	headerName  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")
	placeholder = regexp.MustCompile(`\{([^{}]*)\}`)
)

// HeaderName tells whether a header can have that name.
func HeaderName(name string) bool { return headerName.MatchString(name) }

// The ways a signature can be made and written.
func algorithms() []string { return []string{"sha256", "sha512"} }
func encodings() []string  { return []string{"hex", "base64"} }

const signedBody = "{body}"

func (c *compiler) checkSignature(at string, v Verify) {
	if !headerName.MatchString(v.Header) {
		c.report(at+"/header", "", "must be the name of the header that has the signature")
	}
	if v.Algorithm != "" && !slices.Contains(algorithms(), v.Algorithm) {
		c.report(at+"/algorithm", "", "must be one of %s", strings.Join(algorithms(), ", "))
	}
	if v.Encoding != "" && !slices.Contains(encodings(), v.Encoding) {
		c.report(at+"/encoding", "", "must be one of %s", strings.Join(encodings(), ", "))
	}
	if v.Timestamp != "" && !headerName.MatchString(v.Timestamp) {
		c.report(at+"/timestamp", "", "must be the name of the header that has the time")
	}
	if v.Tolerance != "" && v.Timestamp == "" {
		c.report(at+"/tolerance", "add timestamp", "the age of a call is known only from a header with its time")
	}
	if v.Signed == "" {
		return
	}
	if strings.Count(v.Signed, signedBody) != 1 {
		c.report(at+"/signed", "", "must have {body} in it, once")
	}
	for _, found := range placeholder.FindAllStringSubmatch(v.Signed, -1) {
		if !headerName.MatchString(found[1]) {
			c.report(at+"/signed", "", "%s is not {body} and not a header in braces", found[0])
		}
	}
	if v.Timestamp != "" && !strings.Contains(strings.ToLower(v.Signed), "{"+strings.ToLower(v.Timestamp)+"}") {
		c.report(at+"/signed", "add {"+v.Timestamp+"}", "the time has to be signed too, or anybody could set it")
	}
}
