package integration

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// ServerMetadata describes an authorization server, as its issuer publishes it (RFC 8414
// and OpenID Connect Discovery).
type ServerMetadata struct {
	Issuer           string   `json:"issuer"`
	AuthorizeURL     string   `json:"authorization_endpoint"`
	DeviceURL        string   `json:"device_authorization_endpoint"`
	TokenURL         string   `json:"token_endpoint"`
	RevokeURL        string   `json:"revocation_endpoint"`
	ClientAuth       []string `json:"token_endpoint_auth_methods_supported"`
	ChallengeMethods []string `json:"code_challenge_methods_supported"`
	// TLSAliases are the endpoints for clients with a certificate (RFC 8705).
	TLSAliases struct {
		TokenURL  string `json:"token_endpoint"`
		RevokeURL string `json:"revocation_endpoint"`
	} `json:"mtls_endpoint_aliases"`
	// NamesItself reports whether the server names itself when it sends people back
	// (RFC 9207).
	NamesItself bool `json:"authorization_response_iss_parameter_supported"`
}

// UnresolvedIssuer returns the issuer of the definition of a custom connection that
// leaves out an endpoint, or "", and the certificate authorities of the definition. A
// definition that is not valid has none.
func UnresolvedIssuer(kindName string, definition json.RawMessage) (issuer, ca string) {
	var c custom
	if kindName != OAuth2 || strictjson.Decode(definition, &c) != nil {
		return "", ""
	}
	consentURL := c.AuthorizeURL
	if c.Grant == grantDevice {
		consentURL = c.DeviceURL
	}
	if c.TokenURL != "" && (consentURL != "" || c.Grant == grantClient) {
		return "", ""
	}
	return c.Issuer, c.CA
}

// MetadataURLs returns where the metadata of an issuer may be: the URL of OpenID Connect,
// which adds to the path of the issuer, and that of RFC 8414, which precedes it.
func MetadataURLs(issuer string) ([]string, error) {
	u, err := url.Parse(issuer)
	if err != nil || checkCustomURL(issuer) != nil || u.RawQuery != "" || u.ForceQuery {
		return nil, errors.New("must be an absolute https URL, without a user, a query or a fragment")
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	host := u.Scheme + "://" + u.Host
	return []string{host + path + "/.well-known/openid-configuration", host + "/.well-known/oauth-authorization-server" + path}, nil
}

// Resolve fills in what the definition of a custom connection leaves out. The result no
// longer depends on what the issuer publishes. Problems are about the issuer.
func (m ServerMetadata) Resolve(definition json.RawMessage) (json.RawMessage, error) {
	var c custom
	if err := strictjson.Decode(definition, &c); err != nil {
		return nil, err
	}
	if m.Issuer != c.Issuer {
		return nil, fmt.Errorf("is not what the service calls itself, %q: enter that", m.Issuer)
	}
	var members map[string]any
	if err := json.Unmarshal(definition, &members); err != nil {
		return nil, err
	}
	redirects := c.Grant == "" || c.Grant == grantCode
	if c.ClientAuth == "" {
		var err error
		if c.ClientAuth, err = m.clientAuth(); err != nil {
			return nil, err
		}
		members["client_auth"] = c.ClientAuth
	}
	if c.ClientAuth == ClientAuthTLS {
		m.TokenURL, m.RevokeURL = cmp.Or(m.TLSAliases.TokenURL, m.TokenURL), cmp.Or(m.TLSAliases.RevokeURL, m.RevokeURL)
	}
	for _, endpoint := range []struct {
		name, given, found string
		isUsed             bool
	}{
		{"token_url", c.TokenURL, m.TokenURL, true},
		{"authorize_url", c.AuthorizeURL, m.AuthorizeURL, redirects},
		{"device_url", c.DeviceURL, m.DeviceURL, c.Grant == grantDevice},
		{"revoke_url", c.RevokeURL, m.RevokeURL, true},
	} {
		switch {
		case endpoint.given != "" || !endpoint.isUsed:
		case endpoint.found == "" && endpoint.name == "revoke_url":
		case endpoint.found == "":
			return nil, fmt.Errorf("does not publish its %s: enter it", endpoint.name)
		case checkCustomURL(endpoint.found) != nil, strings.HasPrefix(c.Issuer, "https:") && !strings.HasPrefix(endpoint.found, "https:"):
			return nil, fmt.Errorf("publishes a %s that is not an https URL", endpoint.name)
		default:
			members[endpoint.name] = endpoint.found
		}
	}
	if c.PKCE == nil && redirects {
		// A server that publishes no methods ignores PKCE, or supports it nevertheless.
		members["pkce"] = m.ChallengeMethods == nil || slices.Contains(m.ChallengeMethods, "S256")
	}
	if c.IssRequired == nil && redirects && m.NamesItself {
		members["iss_required"] = true
	}
	return strictjson.Encode(members)
}

func (m ServerMetadata) clientAuth() (string, error) {
	has := func(method string) bool { return slices.Contains(m.ClientAuth, method) }
	switch {
	case m.ClientAuth == nil || has("client_secret_basic"):
		return "basic", nil
	case has("client_secret_post") || has("none"):
		return "body", nil
	case has("tls_client_auth") || has("self_signed_tls_client_auth"):
		return ClientAuthTLS, nil
	case has(PrivateKeyJWT):
		return "", fmt.Errorf("accepts no client secret: set client_auth to %s, and enter a private key", PrivateKeyJWT)
	}
	return "", fmt.Errorf("accepts clients only by %s: Stepmill needs client_secret_basic, client_secret_post or tls_client_auth", strings.Join(m.ClientAuth, ", "))
}
