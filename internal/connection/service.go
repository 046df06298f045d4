package connection

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/singleflight"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/vault"
)

// Vault seals credentials.
type Vault interface {
	Seal(ctx context.Context, ref vault.Ref, plain []byte) ([]byte, error)
	Open(ctx context.Context, ref vault.Ref, sealed []byte) ([]byte, error)
}

// Service implements the operations on connections.
type Service struct {
	stores       Stores // all of those below
	store        Store
	vault        Vault
	client       Client
	integrations *integration.Catalog
	own          Own // nil: there are no own integrations
	apps         AppStore
	consents     ConsentStore
	ending       EndingStore
	audit        Recorder
	fileApps     map[appKey]InstalledApp // of the operator
	node         string                  // this one
	masks        *mask.Cache
	log          *slog.Logger
	*inUse
}

// inUse is what this process knows of the connections that it uses.
type inUse struct {
	renewals singleflight.Group // by connection id
	renewing sync.WaitGroup
	storing  sync.Map           // ids of connections whose renewal waits for the store
	kept     sync.Map           // ids of connections whose new token is not stored yet
	accepted sync.Map           // consents on other devices that are not stored yet: *acceptedDevice
	life     context.Context    // ends when the process stops
	end      context.CancelFunc // ends life
	failed   pauses             // after a renewal that failed for now
	rejected pauses             // after a new token was rejected: a service may respond with 401 to whatever it does not allow
	recent   recentMasks

	mu   sync.Mutex
	used map[string]time.Time // since the last flush
}

// Stores is everything that a Service stores.
type Stores interface {
	// In returns the stores as a part of a transaction.
	In(tx txn.Tx) Stores
	Store
	AppStore
	ConsentStore
	EndingStore
	Recorder
}

// NewService returns a Service. The client sends the requests for tokens and the
// tests of connections, on behalf of a node.
func NewService(store Stores, vault Vault, client Client, integrations *integration.Catalog, node string, log *slog.Logger) *Service {
	life, end := context.WithCancel(context.Background())
	s := &Service{vault: vault, client: client, integrations: integrations, node: node, masks: mask.NewCache(maskMemory), log: log, inUse: &inUse{
		life: life, end: end, used: map[string]time.Time{}, recent: recentMasks{last: map[recentKey]recentMask{}},
		failed: pauses{first: time.Second, longest: time.Minute}, rejected: pauses{first: time.Minute, longest: time.Minute},
	}}
	s.setStores(store)
	return s
}

func (s *Service) setStores(store Stores) {
	s.stores, s.store, s.apps, s.consents, s.ending, s.audit = store, store, store, store, store, store
}

// In returns the service as a part of a transaction. It still reads integrations of the
// workspace on its own.
func (s *Service) In(tx txn.Tx) *Service {
	bound := *s
	bound.setStores(s.stores.In(tx))
	return &bound
}

// New is the input for creating a connection.
type New struct {
	Name        string
	Integration string
	Definition  json.RawMessage
	Auth        string
	Fields      map[string]string
	Access      *Access
	Members     []string
	// Hosts confirms where the credential may be sent, for an own integration.
	Hosts []string
}

// forService returns the input for a connection of the integration whose connections a
// service uses, such as one of Google for Google Sheets. If no services are chosen, that
// one is.
func (s *Service) forService(in New) New {
	service, ok := s.integrations.Find(in.Integration)
	if !ok || service.Of == "" {
		return in
	}
	in.Integration = service.Of
	if field, ok := service.ServicesField(); ok && strings.TrimSpace(in.Fields[field.Name]) == "" {
		fields := map[string]string{}
		maps.Copy(fields, in.Fields)
		fields[field.Name] = service.ID
		in.Fields = fields
	}
	return in
}

// PrepareCreate prepares a connection of a kind that needs no consent.
func (s *Service) PrepareCreate(ctx context.Context, actor auth.Actor, in New) (Sealed, error) {
	in = s.forService(in)
	now := clock.Now()
	c := &opened{Connection: Connection{
		ID: uid.New(uid.Connection), WorkspaceID: actor.Workspace.ID, Name: in.Name, Integration: in.Integration, Definition: in.Definition,
		Auth: in.Auth, Access: Everyone, Status: Untested, Epoch: 1, CreatedAt: now, CreatedBy: actor.Name(), UpdatedAt: now, UpdatedBy: actor.Name(),
	}}
	if !namePattern.MatchString(in.Name) {
		return Sealed{}, fault.Field("/name", nameRule)
	}
	if err := s.setAccess(ctx, &c.Connection, in.Access, in.Members); err != nil {
		return Sealed{}, err
	}
	if err := s.configure(ctx, c, in); err != nil {
		return Sealed{}, err
	}
	if c.auth.NeedsConsent() {
		return Sealed{}, fault.Field("/auth", "%s needs the consent of a person: connect it in the dashboard", c.service.Name)
	}
	return s.seal(ctx, c)
}

// Create creates a prepared connection.
func (s *Service) Create(ctx context.Context, actor auth.Actor, c Sealed) (Connection, error) {
	return c.Connection, s.insert(ctx, actor, c)
}

// insert stores a new connection.
func (s *Service) insert(ctx context.Context, actor auth.Actor, c Sealed) error {
	c.Access = cmp.Or(c.Access, Everyone) // a consent of an earlier version has none
	limit := actor.Limits().Connections
	outcome, err := s.store.InsertConnection(ctx, c, limit, s.entry(actor, "connection.created", c.Connection))
	switch {
	case err != nil:
	case outcome == NameTaken:
		err = nameTaken(c.Name)
	case outcome == NoIntegration:
		err = fault.New(fault.IntegrationNotFound, "the integration %q was deleted", c.Integration)
	case outcome == TooMany:
		err = fault.New(fault.PlanLimitExceeded, "the %s plan allows %d connections; delete one first", actor.Workspace.Plan, limit)
	}
	return err
}

// nameTaken reports a name that another connection has.
func nameTaken(name string) error {
	return fault.New(fault.ConnectionExists, "there is already a connection %q, or one that had this name before", name)
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

const nameRule = "must start with a letter a-z and contain only a-z, 0-9, _ and -, at most 63 characters"

// configure describes a connection that is made and sets its fields.
func (s *Service) configure(ctx context.Context, c *opened, in New) error {
	if err := s.setFields(ctx, c, in.Fields); err != nil {
		return err
	}
	if err := c.confirm(in.Hosts); err != nil {
		return err
	}
	return checkApplied(c)
}

// setFields describes a connection and sets its fields, of which those that are
// missing keep their value. Fields that a change of the definition removed are dropped.
// It evaluates no expression that reads a secret.
func (s *Service) setFields(ctx context.Context, c *opened, fields map[string]string) (err error) {
	if err := checkSize(c.Definition); err != nil {
		return err
	}
	if c.service, c.auth, err = s.describe(ctx, c.Connection); err != nil {
		return err
	}
	known, values := c.service.Fields(c.auth), map[string]string{}
	for _, f := range known {
		if value := cmp.Or(c.Fields[f.Name], c.secrets.Fields[f.Name]); value != "" {
			values[f.Name] = value
		}
	}
	maps.Copy(values, fields)
	var problems []fault.Detail
	c.Fields, c.secrets.Fields, problems = sortFields(known, values, c.service.Name)
	if len(problems) == 0 {
		problems = checkSecrets(known, c.secrets.Fields)
	}
	if c.auth.Kind == integration.ServiceAccount && len(problems) == 0 {
		if _, err := parseKeyFile(c.secrets.Fields["key"]); err != nil {
			problems = append(problems, fault.Detail{Pointer: "/fields/key", Message: err.Error()})
		}
	}
	if c.auth.ClientAuth == integration.PrivateKeyJWT && len(problems) == 0 {
		if _, err := parseClientKey(c.secrets.Fields["private_key"]); err != nil {
			problems = append(problems, fault.Detail{Pointer: "/fields/private_key", Message: err.Error()})
		}
	}
	if len(problems) > 0 {
		return fault.New(fault.InvalidRequest, "some fields are not valid").With(problems...)
	}
	if err := checkCA(c.auth.CA); err != nil {
		return err
	}
	return s.setHosts(c)
}

// checkApplied reports what is wrong with a connection once its secrets are applied. The
// result depends on the secrets, so whoever gets it must have entered them: see
// requireSecrets.
func checkApplied(c *opened) error {
	if problems := slices.Concat(checkUser(c), checkCertificate(c)); len(problems) > 0 {
		return fault.New(fault.InvalidRequest, "some fields are not valid").With(problems...)
	}
	if err := checkSecureHosts(c); err != nil {
		return err
	}
	return checkTestURL(c)
}

// maxDefinition is the maximum size of the definition of a custom connection in bytes.
const maxDefinition = 64 << 10

func checkSize(definition json.RawMessage) error {
	if len(definition) > maxDefinition {
		return fault.Field("/definition", "must be at most %d KiB long", maxDefinition>>10)
	}
	return nil
}

// checkUser reports a user name that basic authentication cannot transmit.
func checkUser(c *opened) []fault.Detail {
	if c.auth.Apply.Basic == nil {
		return nil
	}
	template, env := c.auth.Apply.Basic.User, c.env()
	user, _, err := template.Text(env)
	problem := integration.UserProblem(user)
	if err != nil || problem == "" {
		return nil // it may depend on what the service tells
	}
	at := "/definition/apply/basic/user"
	for _, f := range c.service.Fields(c.auth) {
		isRead := template.Reads("connection."+f.Name) || template.Reads("secret."+f.Name)
		if isRead && integration.UserProblem(env.Connection[f.Name]+env.Secret[f.Name]) != "" {
			at = "/fields/" + f.Name
		}
	}
	return []fault.Detail{{Pointer: at, Message: problem}}
}

// checkTestURL rejects a test of a custom connection that could not use its credential.
// The tests of integrations are checked when their manifests are loaded.
func checkTestURL(c *opened) error {
	if c.Integration != "" || c.auth.Test == nil {
		return nil
	}
	target, err := c.auth.Test.URL.URL(c.env())
	if err != nil || !allows(c.Hosts, target) {
		return fault.Field("/definition/test_url", "must be on one of the hosts of the connection: add its host to hosts, or use another URL")
	}
	return nil
}

// sortFields checks the values that were entered for fields, and tells secrets from the
// others. A field without a value has its default.
func sortFields(known []integration.Field, values map[string]string, service string) (plain, secret map[string]string, problems []fault.Detail) {
	plain, secret = map[string]string{}, map[string]string{}
	for i := range known {
		f := &known[i]
		value := cmp.Or(strings.TrimSpace(values[f.Name]), f.Default)
		if err := checkField(f, value); err != nil {
			problems = append(problems, fault.Detail{Pointer: "/fields/" + f.Name, Message: err.Error()})
		}
		switch {
		case value == "":
		case f.Secret:
			secret[f.Name] = value
		default:
			plain[f.Name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.ContainsFunc(known, func(f integration.Field) bool { return f.Name == name }) {
			problems = append(problems, fault.Detail{Pointer: "/fields/" + name, Message: fmt.Sprintf("is not a field of %s", service)})
		}
	}
	return plain, secret, problems
}

// maxSecretBytes is the maximum size of all secrets of a connection: masking them takes
// time and memory.
const maxSecretBytes = 256 << 10

// checkSecrets reports the first secret that a connection has no room for.
func checkSecrets(known []integration.Field, secrets map[string]string) []fault.Detail {
	count, size := 0, 0
	for _, f := range known {
		if !f.Secret || secrets[f.Name] == "" {
			continue
		}
		count++
		size += len(secrets[f.Name])
		pointer := "/fields/" + f.Name
		switch {
		case count > integration.MaxSecrets:
			return []fault.Detail{{Pointer: pointer, Message: fmt.Sprintf("is one too many: a connection has at most %d secrets", integration.MaxSecrets)}}
		case size > maxSecretBytes:
			return []fault.Detail{{Pointer: pointer, Message: fmt.Sprintf("is too long: all secrets of a connection together have at most %d KiB", maxSecretBytes>>10)}}
		}
	}
	return nil
}

// checkField checks a value of a field. A secret must be long enough to be masked.
func checkField(f *integration.Field, value string) error {
	if err := f.Check(value); err != nil {
		return err
	}
	if f.Secret && value != "" && utf8.RuneCountInString(value) < mask.MinLength {
		return fmt.Errorf("must have at least %d characters: a shorter secret cannot be hidden in the records of runs", mask.MinLength)
	}
	return nil
}

// setHosts fixes the hosts that a credential may be sent to.
func (s *Service) setHosts(c *opened) error {
	names, err := c.service.Hosts(c.env().Connection)
	if err != nil {
		return fault.Field("/fields", "%v", err)
	}
	hosts := make([]Host, 0, len(names))
	for _, name := range names {
		host, err := ParseHost(name)
		if err != nil {
			return fault.Field("/definition/hosts", "%q %v", name, err)
		}
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	c.Hosts = slices.Compact(hosts)
	return nil
}

// describe finds the integration of a connection and its way to authenticate.
func (s *Service) describe(ctx context.Context, c Connection) (*integration.Integration, *integration.Auth, error) {
	if c.Integration == "" {
		service, err := integration.ParseCustom(c.Auth, c.Definition)
		if err != nil {
			return nil, nil, invalidDefinition(err)
		}
		return service, &service.Connection.Auth[0], nil
	}
	service, err := s.integration(ctx, c.WorkspaceID, c.Integration)
	if err != nil {
		return nil, nil, err
	}
	way, ok := service.Connection.Find(c.Auth)
	if !ok {
		return nil, nil, fault.Field("/auth", "must be one of %s", strings.Join(service.Connection.IDs(), ", "))
	}
	return service, way, nil
}

// invalidDefinition reports the problems of a custom connection.
func invalidDefinition(err error) error {
	problems, ok := errors.AsType[integration.Errors](err)
	if !ok {
		return err
	}
	out := fault.New(fault.InvalidRequest, "the connection is not valid")
	for _, problem := range problems {
		pointer := problem.Pointer
		if pointer != "/auth" {
			pointer = "/definition" + pointer
		}
		out = out.With(fault.Detail{Pointer: pointer, Message: problem.Message})
	}
	return out
}

// Get reads one connection.
func (s *Service) Get(ctx context.Context, actor auth.Actor, id string) (Connection, error) {
	if !uid.Valid(uid.Connection, id) {
		return Connection{}, notFound(id)
	}
	c, err := s.store.Connection(ctx, actor.Workspace.ID, id)
	return fault.Found(c, err, notFound, id)
}

// List lists the connections of a workspace by name.
func (s *Service) List(ctx context.Context, actor auth.Actor, page paging.Request) (paging.Page[Connection], error) {
	return s.store.Connections(ctx, actor.Workspace.ID, page)
}

// Usage returns what uses connections, by name.
func (s *Service) Usage(ctx context.Context, actor auth.Actor, names []string) (map[string]Usage, error) {
	return s.store.ConnectionUsage(ctx, actor.Workspace.ID, names)
}

// Places returns where the workflows use a connection, in their order.
func (s *Service) Places(ctx context.Context, actor auth.Actor, name string, usage Usage) ([]Places, error) {
	all := make([]Places, len(usage.Workflows))
	for i, user := range usage.Workflows {
		var err error
		if all[i], err = s.store.ConnectionPlaces(ctx, actor.Workspace.ID, user.ID, append([]string{name}, usage.Aliases...)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Delete deletes a connection that no active workflow uses. Then it revokes its token
// at the service, if the service allows that.
func (s *Service) Delete(ctx context.Context, actor auth.Actor, id string) error {
	c, err := s.Get(ctx, actor, id)
	if err != nil {
		return err
	}
	if err := checkChange(actor, c); err != nil {
		return err
	}
	deleted, users, err := s.store.DeleteConnection(ctx, actor.Workspace.ID, id, s.entry(actor, "connection.deleted", c))
	switch {
	case err != nil:
		return err
	case deleted != nil:
		s.revokeDeleted(ctx, *deleted)
		return nil
	case len(users) > 0:
		return fault.New(fault.ConnectionInUse, "the connection %q is used by the active workflow %q: pause it or change it first", c.Name, users[0].Name)
	}
	return notFound(id)
}

func (s *Service) entry(actor auth.Actor, what string, c Connection) audit.Entry {
	return actor.AuditEntry(what, "connection", c.ID, map[string]any{"name": c.Name})
}

func notFound(id string) error {
	return fault.New(fault.ConnectionNotFound, "there is no connection %q", id)
}

// markUsed notes that a connection was used.
func (s *Service) markUsed(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[id] = clock.Now()
}

// Flush writes when connections were last used.
func (s *Service) Flush(ctx context.Context) error {
	s.mu.Lock()
	used := s.used
	s.used = map[string]time.Time{}
	s.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	return s.store.MarkConnectionsUsed(ctx, used)
}
