package integration

import (
	"maps"
	"slices"
)

func (p *customParser) checkGrant() {
	switch p.Grant {
	case "", grantCode, grantClient, grantDevice:
	default:
		p.fail("/grant", "must be "+grantCode+", "+grantClient+" or "+grantDevice)
	}
	switch {
	case p.Grant == grantClient && p.AuthorizeURL != "":
		p.fail("/authorize_url", "must be left out: nobody consents to client credentials")
	case p.Grant == grantCode && p.AuthorizeURL == "":
		p.fail("/authorize_url", "is required: where people consent")
	case p.Grant == grantDevice && p.AuthorizeURL != "":
		p.fail("/authorize_url", "must be left out: the service says where people enter the code")
	case p.Grant == grantDevice && p.DeviceURL == "":
		p.fail("/device_url", "is required: where codes for people are issued")
	case p.Grant != grantDevice && p.DeviceURL != "":
		p.fail("/device_url", "needs the grant "+grantDevice)
	}
}

// PrivateKeyJWT is the client authentication with a signed assertion (RFC 7523, section
// 2.2) instead of a secret. Only custom connections have it.
const PrivateKeyJWT = "private_key_jwt"

// clientFields are the client that tokens are issued to. A public client has no secret.
func clientFields(secretIsOptional bool) []Field {
	return []Field{{Name: "client_id", Title: "Client ID"}, {Name: "client_secret", Title: "Client secret", Secret: true, Optional: secretIsOptional}}
}

// signingClientFields are a client that authenticates with PrivateKeyJWT.
func signingClientFields() []Field {
	return []Field{
		{Name: "client_id", Title: "Client ID"},
		{Name: "private_key", Title: "Private key", Secret: true, Format: FormatPEM, Help: "In PEM format: RSA, EC or Ed25519."},
		{Name: "key_id", Title: "Key ID", Optional: true},
	}
}

// ownParams are the parameters that Stepmill sets itself in the URL where people consent
// or in requests for tokens, with what to use instead. A custom connection cannot set
// them: its definition must not change which client asks, for whom, or where the answer
// goes.
var ownParams = map[string]string{
	"client_id":             "enter it as the field client_id",
	"client_secret":         "enter it as the field client_secret",
	"client_assertion":      "remove it",
	"client_assertion_type": "remove it",
	"response_type":         "remove it",
	"redirect_uri":          "remove it",
	"state":                 "remove it",
	"scope":                 "use scopes",
	"code_challenge":        "use pkce",
	"code_challenge_method": "use pkce",
	"code_verifier":         "use pkce",
	"request":               "remove it", // it stands for all parameters (RFC 9101), and so does request_uri
	"request_uri":           "remove it",
	"grant_type":            "use grant",
	"code":                  "remove it",
	"device_code":           "remove it",
	"refresh_token":         "remove it",
}

// params compiles the further parameters of a request of the OAuth protocol.
func (p *customParser) params(member string, given map[string]string) map[string]Template {
	out := map[string]Template{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		pointer := at("/"+member, name)
		instead, own := ownParams[name]
		switch {
		case own:
			p.fail(pointer, "is set by Stepmill: "+instead)
		case name == "":
			p.fail(pointer, "needs a name")
		}
		out[name] = p.constant(pointer, given[name])
	}
	return out
}
