package integration

import (
	"maps"
	"reflect"
	"regexp"
	"sync"

	"github.com/stepmill/stepmill/internal/typeschema"
)

// SchemaID is the id of the JSON Schema of manifests, whatever URL serves it.
const SchemaID = "urn:stepmill:schema:integration:v1"

// Schema returns the JSON Schema of manifests for editors. Its structure is that of the
// types that manifests are decoded into. It covers what concerns one object; Parse checks
// the rest, such as expressions. Callers must not modify it.
var Schema = sync.OnceValues(func() ([]byte, error) {
	types := typeschema.Types{}
	for _, part := range []typeschema.Types{connectionTypes(), operationTypes(), triggerTypes(), hookTypes(), inputTypes(), callTypes()} {
		maps.Copy(types, part)
	}
	types[reflect.TypeFor[manifest]()] = manifestType()
	return types.Document(SchemaID, reflect.TypeFor[manifest]())
})

type node = typeschema.Node

func manifestType() typeschema.Type {
	return typeschema.Type{
		Title: "Stepmill integration", Description: "A service: how to connect to it, and what steps can do there.",
		Required: []string{"id", "name", "category", "docs", "connection"},
		Members: map[string]any{
			"id":         withPattern(idPattern, "The name of the folder of the manifest."),
			"name":       requiredText("The name of the service."),
			"category":   oneOf(Categories(), "Where lists show the service."),
			"docs":       node{"pattern": "^https://", "description": "The https URL of the service's documentation of its API."},
			"keywords":   node{"items": requiredText(""), "description": "Further words that people search for."},
			"base_url":   "Where the paths of calls start, such as https://api.example.com/v1.",
			"headers":    "Headers that every request to the service carries.",
			"connection": "How to authenticate, and which hosts receive the credential.",
			"errors":     "How to recognize errors, for all calls. The rules of a call are tried first.",
			"rate":       "How often the service can be called with a connection.",
			"operations": "What steps can do, by name.",
			"hooks":      "How the service calls when something happens there, by name.",
			"triggers":   "What starts runs, by name.",
		},
	}
}

func connectionTypes() typeschema.Types {
	return typeschema.Types{
		reflect.TypeFor[manifestConnection](): {
			Name: "connection", Title: "Connection",
			Members: map[string]any{
				"of":     node{"pattern": idPattern.String(), "description": "The integration whose connections this one uses."},
				"scopes": node{"items": requiredText(""), "description": "The OAuth scopes that this integration needs of the connections that it shares."},
				"fields": "What people enter with every way to authenticate.",
				"auth":   node{"minItems": 1, "description": "The ways to authenticate."},
				"hosts":  node{"minItems": 1, "description": "The hosts that receive the credential."},
				"test":   node{"propertyNames": node{"enum": testMembers()}, "description": "The request that checks a connection."},
				"learn":  node{"propertyNames": names(identifier), "description": "What a connection learns from the service. label, which is required, and account have a meaning of their own."},
			},
			Keywords: node{
				"if":   node{"required": []string{"of"}},
				"then": node{"propertyNames": node{"enum": []string{"of", "scopes"}}},
				"else": node{"required": []string{"auth", "hosts"}, "properties": node{"scopes": false}},
			},
		},
		reflect.TypeFor[manifestAuth](): authType(),
		reflect.TypeFor[manifestExchange](): {
			Name: "exchange", Required: []string{"params"},
			Members: map[string]any{
				"url":    "Where the token is traded. Default: token_url.",
				"params": node{"required": []string{"grant_type"}, "description": "The parameters of the request. token is the token to trade."},
			},
		},
		reflect.TypeFor[manifestApply](): {
			Name: "apply", Description: "Where the credential goes. Expressions read secret and token.",
			Members: map[string]any{
				"headers": "Headers that have the credential.",
				"query":   "Parameters of the query that have the credential.",
				"basic":   "HTTP basic authentication.",
				"path":    "Text that replaces {auth} in base_url and in paths.",
			},
			Keywords: node{"minProperties": 1},
		},
		reflect.TypeFor[manifestBasic](): {
			Name: "basic", Members: map[string]any{"user": "The user name.", "password": "The password."},
		},
		reflect.TypeFor[manifestHost](): {
			Name: "host", Required: []string{"host"}, Short: node{"type": "string", "description": "A host."},
			Members: map[string]any{
				"host":   "A host, or a variable that has a host or an https URL.",
				"within": "The domains that the host must lie in.",
			},
		},
		reflect.TypeFor[manifestFields](): {Values: reflect.TypeFor[manifestField](), Keywords: node{"propertyNames": names(identifier)}},
		reflect.TypeFor[manifestField]():  fieldType(),
		reflect.TypeFor[manifestChoice](): {
			Name: "choice", Required: []string{"value"}, Short: requiredText("A value."),
			Members: map[string]any{"value": requiredText("The value."), "label": "What people see."},
		},
	}
}

func fieldType() typeschema.Type {
	return typeschema.Type{
		Name: "field", Description: "A value that people enter.", Required: []string{"title"},
		Members: map[string]any{
			"title":    requiredText("The label of the field."),
			"help":     "Where people find the value.",
			"secret":   "The value is encrypted, and only apply can read it.",
			"optional": "The value can be left out.",
			"default":  "The value if people enter none.",
			"enum":     "The values to choose from.",
			"pattern":  node{"format": "regex", "description": "A regular expression that the whole value must match."},
			"format":   oneOf(Formats(), "host_label is one part of a host name, pem a certificate or a key, services the integrations that share the connection."),
			"example":  "A value as an example.",
		},
	}
}

func authType() typeschema.Type {
	var rules []node
	for _, k := range kinds {
		then := node{"propertyNames": node{"enum": k.allowed()}}
		if k.required != nil {
			then["required"] = k.required
		}
		rules = append(rules, node{"if": node{"required": []string{"kind"}, "properties": node{"kind": node{"const": k.name}}}, "then": then})
	}
	return typeschema.Type{
		Name: "auth", Description: "A way to authenticate.", Required: []string{"kind"},
		Keywords: node{"allOf": rules},
		Members: map[string]any{
			"id":         node{"pattern": identifier.String(), "description": "Identifies the entry. Default: its kind."},
			"kind":       oneOf(Kinds(), "What people enter, and where it goes."),
			"label":      requiredText("What people see. Required, unless they sign in at the service."),
			"help":       "Where people get the credential.",
			"fields":     "What people enter beside the fields of the kind, or instead of them with an apply.",
			"app_fields": "What people enter for an OAuth app beside the client id and secret.",
			"apply":      "Where the credential goes, if not where the kind puts it.",
			"test":       node{"propertyNames": node{"enum": testMembers()}, "description": "Replaces the test of the connection."},
			"learn":      node{"propertyNames": names(identifier), "description": "Adds to what the connection learns."},
			"service":    "The name of the AWS service in signatures.",

			"authorize_url":   "Where people consent. Without it, the entry uses client credentials.",
			"token_url":       "Where tokens are issued.",
			"revoke_url":      "Where tokens are revoked.",
			"scopes":          node{"items": requiredText(""), "uniqueItems": true, "description": "The OAuth scopes."},
			"scope_separator": node{"default": " ", "description": "What separates scopes."},
			"scope_param":     node{"default": "scope", "description": "The parameter that has the scopes."},
			"params":          "Further parameters of authorize_url.",
			"token_params":    "Further parameters of the request for the first token.",
			"client_auth":     oneOf(clientAuths(), "Where the client id and secret go."),
			"token_body":      withDefault("form", oneOf(tokenBodies(), "How requests for tokens are encoded.")),
			"revoke_body":     oneOf(tokenBodies(), "How the revocation of a token is encoded. Default: like token_body."),
			"revoke_param":    node{"default": "token", "description": "The parameter with the token to revoke."},
			"pkce":            node{"default": true, "description": "False if the service rejects PKCE."},
			"token_at":        "The member of the answer that has the token. Default: the answer itself.",
			"refusals":        "Further errors with which the service refuses tokens until somebody reconnects.",
			"exchange":        "Trades the token for one that lives longer, after sign-in and instead of a refresh.",
		},
	}
}

func testMembers() []string {
	other := operationMembers(&manifestCall{})
	var out []string
	for field := range reflect.TypeFor[manifestCall]().Fields() {
		name := field.Tag.Get("json")
		if _, isOther := other[name]; !isOther {
			out = append(out, name)
		}
	}
	return out
}

func requiredText(description string) node {
	out := node{"type": "string", "pattern": `\S`}
	if description != "" {
		out["description"] = description
	}
	return out
}

func withPattern(pattern *regexp.Regexp, description string) node {
	return node{"pattern": pattern.String(), "description": description}
}

func oneOf(values []string, description string) node {
	return node{"enum": values, "description": description}
}

func withDefault(value any, schema node) node {
	schema["default"] = value
	return schema
}

func names(pattern *regexp.Regexp) node { return node{"pattern": pattern.String()} }
