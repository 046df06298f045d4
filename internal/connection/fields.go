package connection

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/mask"
)

// configure finds the integration of a new connection and sets its fields.
func (i *integrations) configure(ctx context.Context, c *opened, in New) error {
	if err := i.setFields(ctx, c, in.Fields); err != nil {
		return err
	}
	if err := c.confirm(in.Hosts); err != nil {
		return err
	}
	return checkApplied(c)
}

// setFields finds the integration of a connection and sets its fields. Fields that are missing
// keep their value; fields that the definition no longer has are dropped. It evaluates no
// expression that reads a secret, because its errors reach callers who may not know the secret.
func (i *integrations) setFields(ctx context.Context, c *opened, fields map[string]string) (err error) {
	if err := checkSize(c.Definition); err != nil {
		return err
	}
	if c.service, c.auth, err = i.describe(ctx, c.Connection); err != nil {
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
	return c.setHosts()
}

// checkApplied checks what depends on the secrets of a connection. Its errors can tell something
// about them, so only someone who has entered them may see these: see requireSecrets.
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
	if err == nil && !allows(c.Hosts, target) && allowsWithTLS(c.Hosts, target) {
		return fault.Field("/definition/test_url", "is on http, but the host %s means https: add http://%s to hosts if the server has no TLS", target.Host, target.Host)
	}
	if err != nil || !allows(c.Hosts, target) {
		return fault.Field("/definition/test_url", "must be on one of the hosts of the connection: add its host to hosts, or use another URL")
	}
	return nil
}

// sortFields checks the values of fields, and separates secrets from the others. A field without
// a value gets its default.
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

// checkSecrets reports the first secret that exceeds the limits of a connection.
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

// setHosts sets the hosts that a credential may be sent to, as the integration and the variables
// of the connection determine them.
func (c *opened) setHosts() error {
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
