package integration

import "slices"

// The kinds of authentication.
const (
	APIKey         = "api_key"
	Bearer         = "bearer"
	BasicAuth      = "basic"
	OAuth2         = "oauth2"
	ServiceAccount = "service_account"
	AWSSigV4       = "aws_sigv4"
	Digest         = "digest"
	// ClientCertificate is a certificate that TLS connections authenticate with.
	ClientCertificate = "client_certificate"
)

// The fields of a client certificate. Custom connections of every kind have them.
const (
	CertificateField = "client_certificate"
	KeyField         = "client_key"
)

func certificateFields(areOptional bool) []Field {
	return []Field{
		{Name: CertificateField, Title: "Client certificate", Format: FormatPEM, Optional: areOptional},
		{Name: KeyField, Title: "Private key of the client certificate", Format: FormatPEM, Secret: true, Optional: areOptional},
	}
}

// kind describes a kind of authentication: what people enter, how it is applied,
// and which members an entry of the kind has beside those of every entry.
type kind struct {
	name string
	// fields and apply are those of an entry without an apply of its own.
	fields []Field
	apply  *manifestApply
	// hasToken reports whether the credential is a token that the service issues.
	hasToken bool
	members  []string
	required []string
}

// commonMembers are the members that an entry of every kind can have.
func commonMembers() []string {
	return []string{"id", "kind", "label", "help", "fields", "test", "learn"}
}

func (k kind) allowed() []string { return slices.Concat(commonMembers(), k.members) }

var bearerToken = &manifestApply{Headers: map[string]string{"Authorization": "Bearer ${{ token }}"}}

var kinds = []kind{
	{
		name:     APIKey,
		members:  []string{"apply"},
		required: []string{"fields", "apply"},
	},
	{
		name:    Bearer,
		fields:  []Field{{Name: "token", Title: "Token", Secret: true}},
		apply:   &manifestApply{Headers: map[string]string{"Authorization": "Bearer ${{ secret.token }}"}},
		members: []string{"apply"},
	},
	{
		name: BasicAuth,
		fields: []Field{
			{Name: "username", Title: "User name"},
			{Name: "password", Title: "Password", Secret: true},
		},
		apply:   &manifestApply{Basic: &manifestBasic{User: "${{ connection.username }}", Password: "${{ secret.password }}"}},
		members: []string{"apply"},
	},
	{
		name: Digest,
		fields: []Field{
			{Name: "username", Title: "User name"},
			{Name: "password", Title: "Password", Secret: true},
		},
	},
	{
		name: OAuth2, apply: bearerToken, hasToken: true,
		members: []string{
			"apply", "app_fields", "authorize_url", "token_url", "revoke_url", "scopes", "scope_separator", "scope_param",
			"params", "token_params", "client_auth", "token_body", "revoke_body", "revoke_param", "pkce", "token_at", "exchange", "refusals",
		},
		required: []string{"token_url", "client_auth"},
	},
	{
		name: ServiceAccount, apply: bearerToken, hasToken: true,
		fields: []Field{
			{Name: "key", Title: "Key file", Secret: true, Format: FormatJSON, Help: "The content of the JSON file."},
			{Name: "subject", Title: "User to act for", Optional: true},
		},
		members:  []string{"token_url", "scopes"},
		required: []string{"token_url", "scopes"},
	},
	{
		name: AWSSigV4,
		fields: []Field{
			{Name: "access_key_id", Title: "Access key ID"},
			{Name: "secret_access_key", Title: "Secret access key", Secret: true},
			{Name: "region", Title: "Region", Format: FormatHostLabel, Example: "eu-central-1"},
			{Name: "session_token", Title: "Session token", Secret: true, Optional: true, Help: "Only for temporary credentials."},
		},
		members: []string{"service"},
	},
	{name: ClientCertificate, fields: certificateFields(false)},
}

// Kinds returns the names of all kinds.
func Kinds() []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.name)
	}
	return out
}

func findKind(name string) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}
