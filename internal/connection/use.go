package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/digest"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/vault"
)

// opened is a connection with its secrets.
type opened struct {
	Connection
	secrets secrets
	service *integration.Integration
	auth    *integration.Auth
}

// scopes returns the OAuth scopes that the connection asks for.
func (c *opened) scopes() []string { return c.service.ScopesOf(c.auth, c.Fields) }

// setScopes adds the scopes to the parameters of a request, if there are any.
func (c *opened) setScopes(params url.Values) {
	if scopes := c.scopes(); len(scopes) > 0 {
		params.Set(c.auth.ScopeParam, strings.Join(scopes, c.auth.ScopeSeparator))
	}
}

// env returns the values that the templates of the integration can read.
func (c *opened) env() integration.Env {
	env := integration.Env{Connection: map[string]string{}, Secret: c.secrets.Fields}
	for _, values := range []map[string]string{c.Fields, c.Learned} {
		maps.Copy(env.Connection, values)
	}
	if c.secrets.Token != nil {
		env.Token = c.secrets.Token.Access
	}
	return env
}

// client returns the OAuth app of the connection: the one that was entered or, for an
// integration, the one that a person consented to.
func (c *opened) client() oauthClient {
	if c.Integration != "" && c.secrets.ClientID != "" {
		return oauthClient{c.secrets.ClientID, c.secrets.ClientSecret}
	}
	return oauthClient{c.Fields["client_id"], c.secrets.Fields["client_secret"]}
}

// hasToken reports whether the credential is a token that can be renewed.
func (c *opened) hasToken() bool {
	return c.auth.Kind == integration.OAuth2 || c.auth.Kind == integration.ServiceAccount
}

// connection returns a connection as actions use it.
func (s *Service) connection(c *opened) action.Connection {
	return action.Connection{Name: c.Name, Integration: c.Integration, Variables: c.env().Connection, Credential: c.credential(), Mask: s.mask(c)}
}

// credential returns what authenticates the requests of a connection.
func (c *opened) credential() egress.Credential {
	if !c.isConfirmed() {
		return credential{apply: func(*http.Request) error { return errUnconfirmed(c) }}
	}
	out := credential{hosts: c.Hosts, apply: applyTemplates(c.auth.Apply, c.env()), tls: c.tls()}
	switch c.auth.Kind {
	case integration.AWSSigV4:
		out.apply = c.signAWS
	case integration.Digest:
		return digestCredential{out, digest.Credentials{Username: c.Fields["username"], Password: c.secrets.Fields["password"]}}
	}
	return out
}

func (c *opened) signAWS(r *http.Request) error {
	service := c.auth.Service
	if service == "" {
		service = awsService(r.URL.Hostname(), c.Fields["region"])
	}
	return signAWS(service, c.Fields["region"], aws.Credentials{
		AccessKeyID: c.Fields["access_key_id"], SecretAccessKey: c.secrets.Fields["secret_access_key"], SessionToken: c.secrets.Fields["session_token"],
	})(r)
}

// Use calls a function with a connection. If the server rejects the credential, and the
// test of the connection confirms that, it renews a credential that can be renewed. In
// both cases it calls the function once more. It waits at most as long as given for a
// token. It returns a BrokenError if the connection has to be reconnected first.
func (s *Service) Use(ctx context.Context, workspaceID, name string, wait time.Duration, call usage) error {
	c, err := s.read(ctx, workspaceID, name)
	if err == nil {
		c, err = s.within(ctx, c, wait, s.refresh)
	}
	if err != nil {
		return err
	}
	return s.use(ctx, c, wait, call, s.accepts)
}

// within waits for the token of a connection no longer than the limit.
func (s *Service) within(ctx context.Context, c *opened, limit time.Duration, get func(context.Context, *opened) (*opened, error)) (*opened, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ready, err := get(limited, c)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return ready, err
	}
	if _, storing := s.storing.Load(c.ID); storing {
		return nil, &StoreError{c.Name, err}
	}
	return nil, &action.Failure{
		Code: action.TimedOut, Retryable: true,
		Message: fmt.Sprintf("the token of the connection %q was not renewed within %s", c.Name, clock.FormatDuration(limit)),
	}
}

// verdict is what is known about a credential that a server has rejected.
type verdict int

const (
	rejected verdict = iota
	accepted         // the rejection was about the request
	unknown          // for now
)

// use calls a function with an open connection. If its credential is rejected, judge
// finds out whether that was about the credential.
func (s *Service) use(ctx context.Context, c *opened, wait time.Duration, call usage, judge judge) error {
	err := call(ctx, s.connection(c))
	if isRejected(err) {
		c, err = s.afterRejection(ctx, c, err, wait, call, judge)
	}
	if err == nil {
		s.markUsed(c.ID)
		s.setStatus(ctx, c, Connected, "")
	}
	return err
}

// usage is what a connection is used for, and judge finds out why it was rejected.
type (
	usage = func(context.Context, action.Connection) error
	judge = func(context.Context, *opened) verdict
)

// afterRejection renews a rejected credential if that may help, or lets the call have its
// 401 if the credential is not the reason for it.
func (s *Service) afterRejection(ctx context.Context, c *opened, rejection error, wait time.Duration, call usage, judge judge) (*opened, error) {
	judged := judge(ctx, c)
	if pause, _ := s.rejected.left(c, clock.Steady()); judged == rejected && c.hasToken() && pause == 0 {
		renewed, err := s.within(ctx, c, wait, s.renew)
		if err != nil {
			return c, err
		}
		c = renewed
		if rejection = call(ctx, s.connection(c)); !isRejected(rejection) {
			return c, rejection
		}
		s.rejected.begin(c, rejection, clock.Steady())
		judged = judge(ctx, c)
	}
	switch judged {
	case rejected:
		s.setStatus(ctx, c, Failing, "the service rejected the credential (401)")
		return c, rejection
	case unknown:
		return c, retryable(rejection)
	default:
		known := s.connection(c)
		known.Accepted = true
		return c, call(ctx, known)
	}
}

// accepts asks the service with the test of a connection whether it accepts the
// credential. Without a test, or if the test fails for another reason that will not pass,
// the credential counts as rejected.
func (s *Service) accepts(ctx context.Context, c *opened) verdict {
	if c.auth.Test == nil {
		return rejected
	}
	_, err := s.sendTest(ctx, c, s.connection(c))
	if err == nil {
		return accepted
	}
	if failure, ok := errors.AsType[*action.Failure](err); ok && !failure.Retryable {
		return rejected
	}
	return unknown
}

// retryable returns a failure as one that a later attempt may not have.
func retryable(err error) error {
	failure, ok := errors.AsType[*action.Failure](err)
	if !ok {
		return err
	}
	again := *failure
	again.Rejected, again.Retryable = false, true
	return &again
}

func isRejected(err error) bool {
	failure, ok := errors.AsType[*action.Failure](err)
	return ok && failure.Rejected
}

// setStatus records whether a connection works, if that is news. If the store fails, the
// next use records it: what the connection was used for is done.
func (s *Service) setStatus(ctx context.Context, c *opened, status Status, problem string) {
	if c.Status == status {
		return
	}
	if _, err := s.store.SetConnectionStatus(context.WithoutCancel(ctx), c.WorkspaceID, c.ID, c.Epoch, status, problem); err != nil {
		s.log.Warn("cannot record whether a connection works", "connection", c.ID, "status", string(status), "error", err)
	}
}

// refresh returns a connection with a token that can be used. One that is about to expire
// is renewed in the background; only one that has expired is waited for.
func (s *Service) refresh(ctx context.Context, c *opened) (*opened, error) {
	switch now := clock.Now(); {
	case !c.hasToken() || !c.secrets.Token.isDue(now):
		return c, nil
	case c.secrets.Token.isUsable(now):
		s.startRenewal(ctx, c)
		return c, nil
	}
	return s.renew(ctx, c)
}

// read reads a connection that does not have to be reconnected, and opens its credential.
func (s *Service) read(ctx context.Context, workspaceID, name string) (*opened, error) {
	c, err := s.readAny(ctx, workspaceID, name)
	if err == nil {
		err = c.broken(name)
	}
	if err == nil {
		err = s.refuseUnconfirmed(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// broken returns a BrokenError if the connection, which was asked for by a name that it
// has or had before, has to be reconnected.
func (c *opened) broken(name string) error {
	if c.Status != NeedsReconnect {
		return nil
	}
	return &BrokenError{Name: name, Problem: c.Problem}
}

// readAny reads a connection, whatever its status, and opens its credential.
func (s *Service) readAny(ctx context.Context, workspaceID, name string) (*opened, error) {
	sealed, err := s.store.SealedConnection(ctx, workspaceID, name)
	switch {
	case err != nil:
		return nil, storeFailed(ctx, name, err)
	case sealed == nil:
		return nil, &action.Failure{Code: CodeMissing, Message: fmt.Sprintf("there is no connection %q", name)}
	}
	return s.unseal(ctx, *sealed)
}

func (s *Service) unseal(ctx context.Context, sealed Sealed) (*opened, error) {
	c, err := s.openSecrets(ctx, sealed)
	if err != nil {
		return nil, err
	}
	c.service, c.auth, err = s.describe(ctx, c.Connection)
	return c, err
}

// openSecrets opens the credential of a connection.
func (s *Service) openSecrets(ctx context.Context, sealed Sealed) (*opened, error) {
	c := &opened{Connection: sealed.Connection}
	plain, err := s.vault.Open(ctx, sealedAt(c.Connection), sealed.Credential)
	if err != nil {
		return nil, storeFailed(ctx, c.Name, fmt.Errorf("open the connection %s: %w", c.ID, err))
	}
	if err := json.Unmarshal(plain, &c.secrets); err != nil {
		return nil, fmt.Errorf("read the connection %s: %w", c.ID, err)
	}
	return c, nil
}

// seal returns a connection as it is stored.
func (s *Service) seal(ctx context.Context, c *opened) (Sealed, error) {
	plain, err := json.Marshal(c.secrets) //nolint:gosec // it is sealed
	if err != nil {
		return Sealed{}, err
	}
	sealed, err := s.vault.Seal(ctx, sealedAt(c.Connection), plain)
	return Sealed{Connection: c.Connection, Credential: sealed}, err
}

// sealedAt returns the location that a credential is sealed for. It cannot be opened
// at another one.
func sealedAt(c Connection) vault.Ref {
	return vault.Ref{Workspace: c.WorkspaceID, Table: "connections", ID: c.ID}
}
