package connection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/mask"
)

// Tester tests connections when somebody asks for it, and new ones after a consent.
type Tester struct {
	repo        *repository
	connections *Service
	opener      *Opener
	renewer     *Renewer
	client      Client
	audit       Recorder
}

// TestResult is the outcome of a test of a connection.
type TestResult struct {
	Connection Connection
	// Problem is why the test failed; empty if it succeeded.
	Problem string
}

// Test sends the test request of a connection and records the outcome, and the account and
// the variables that the response contains.
func (t *Tester) Test(ctx context.Context, actor auth.Actor, id string) (TestResult, error) {
	c, err := t.connections.Usable(ctx, actor, id)
	if err != nil {
		return TestResult{}, err
	}
	problem := ""
	err = t.test(ctx, actor, c)
	if failure, ok := errors.AsType[*action.Failure](err); ok {
		problem = failure.Message
		err = t.audit.RecordAudit(ctx, actor.AuditEntry("connection.tested", "connection", c.ID, map[string]any{"name": c.Name, "problem": problem}))
	}
	if err != nil {
		return TestResult{}, err
	}
	c, err = t.connections.Get(ctx, actor, id)
	return TestResult{Connection: c, Problem: problem}, err
}

func (t *Tester) test(ctx context.Context, actor auth.Actor, tested Connection) error {
	c, err := t.openForTest(ctx, tested)
	if err != nil {
		return err
	}
	if c.auth.Test == nil {
		if c.hasToken() { // that the service issued it is all that can be tested
			return t.recordTest(ctx, actor, c, nil)
		}
		return fault.New(fault.InvalidRequest, "the connection has no test: set test_url to a URL that requires the credential")
	}
	var body any
	send := func(ctx context.Context, used action.Connection) (err error) {
		body, err = sendTest(ctx, t.client, c, used)
		return err
	}
	err = t.opener.use(ctx, c, renewalTime, send, func(context.Context, *opened) verdict { return rejected })
	if err == nil {
		return t.recordTest(ctx, actor, c, body)
	}
	if failure, ok := errors.AsType[*action.Failure](err); ok && !failure.Rejected && !failure.Retryable {
		t.opener.setStatus(ctx, c, Failing, failure.Message)
	}
	return err
}

// openForTest opens a connection for a test. It requests a token that is due even if the
// connection is broken or an earlier request has failed: whoever tests a connection may just
// have fixed it at the service. If that repairs the connection, the steps that wait for it
// continue.
func (t *Tester) openForTest(ctx context.Context, tested Connection) (*opened, error) {
	t.opener.endPauses(tested.ID)
	c, err := t.repo.reopen(ctx, tested)
	if err != nil {
		return nil, err
	}
	if err := t.repo.refuseUnconfirmed(ctx, c); err != nil {
		return nil, err
	}
	broken := c.Status == NeedsReconnect
	if !c.hasToken() || !broken && c.secrets.Token.isUsable(clock.Now()) {
		return c, nil
	}
	if c, err = t.renewer.renew(ctx, c); err == nil && broken {
		err = t.repo.wakeSteps(ctx, c.Connection)
	}
	return c, err
}

// sendTest sends the test request and returns the body of the response. An action.Failure that
// it returns contains no secrets.
func sendTest(ctx context.Context, client Client, c *opened, used action.Connection) (any, error) {
	rendered, err := c.service.Render(c.auth.Test, c.env())
	if err != nil {
		return nil, &action.Failure{Code: action.InvalidInput, Message: err.Error()}
	}
	request := egress.Request{
		Workspace: c.WorkspaceID, Method: rendered.Method, URL: rendered.URL, Header: rendered.Header,
		Credential: used.Credential, FollowRedirects: true, Timeout: tokenTimeout,
	}
	if request.Body, err = rendered.EncodeBody(); err != nil {
		return nil, err
	}
	resp, err := client.Do(ctx, request)
	if failure, ok := errors.AsType[*egress.Error](err); ok {
		return nil, &action.Failure{Code: string(failure.Code), Message: failure.Message, Retryable: failure.Retryable}
	}
	if err != nil {
		return nil, err
	}
	return checkTest(c, resp, used.Mask)
}

// checkTest returns the body of the response to a test, or why the test failed.
func checkTest(c *opened, resp *egress.Response, hide *mask.Masker) (any, error) {
	env := integration.Env{Status: resp.Status, Headers: map[string]string{}}
	for name := range resp.Header {
		env.Headers[strings.ToLower(name)] = resp.Header.Get(name)
	}
	if body, err := expr.FromJSON(resp.Body); err == nil {
		env.Body = body
	}
	for _, rule := range slices.Concat(c.auth.Test.Errors, c.service.Errors) {
		holds, err := rule.When.Holds(env)
		if err != nil || !holds {
			continue
		}
		if rule.Kind == integration.NoError {
			return env.Body, nil
		}
		text, _, err := rule.Message.Text(env)
		if err != nil || text == "" {
			text = "the service reports an error"
		}
		return nil, &action.Failure{Code: "test_failed", Message: hide.Text(text), Rejected: resp.Status == http.StatusUnauthorized}
	}
	if resp.Status >= http.StatusBadRequest {
		return nil, &action.Failure{
			Code: "test_failed", Rejected: resp.Status == http.StatusUnauthorized, Retryable: resp.Status >= http.StatusInternalServerError,
			Message: strings.TrimSpace(fmt.Sprintf("the service responded with %d %s", resp.Status, http.StatusText(resp.Status))),
		}
	}
	return env.Body, nil
}

// recordTest records that a test succeeded and what was learned from it, unless somebody has
// changed the connection in the meantime, so that something else was tested.
func (t *Tester) recordTest(ctx context.Context, actor auth.Actor, tested *opened, body any) error {
	now, err := t.repo.read(ctx, tested.WorkspaceID, tested.Name) // the test may have renewed the token
	if err != nil || !now.isLike(tested) {
		return err
	}
	next := *now
	if err := next.learnFromTest(body); err != nil {
		return err
	}
	next.Status, next.Problem, next.UpdatedAt, next.UpdatedBy = Connected, "", clock.Now(), actor.Name()
	sealed, err := t.repo.seal(ctx, &next)
	if err != nil {
		return err
	}
	entry := auditEntry(actor, "connection.tested", next.Connection)
	_, err = t.repo.store.UpdateConnection(ctx, sealed, now.Epoch, &entry)
	return err
}

// testUnstored tests a connection that is not stored yet and learns from the response.
func (t *Tester) testUnstored(ctx context.Context, c *opened) error {
	if c.auth.Test == nil {
		return nil
	}
	body, err := sendTest(ctx, t.client, c, t.opener.connection(c))
	if err != nil {
		return err
	}
	return c.learnFromTest(body)
}
