// Package oidc signs users in at an identity provider with OpenID Connect: the
// authorization code flow with PKCE, state and nonce. The package account decides
// who may sign in.
package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	provider "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/stepmill/stepmill/internal/account"
)

// requestTimeout bounds how long a user waits for the provider.
const requestTimeout = 15 * time.Second

// Config is the client that the operator registered at the provider.
type Config struct {
	Issuer       string
	ClientID     string
	ClientSecret string // "" for a public client
	// Client sends the requests to the provider.
	Client *http.Client
}

// Provider signs users in. It fetches the provider's discovery document on first
// use, so that the service can start while the provider is down.
type Provider struct {
	config     Config
	discovered atomic.Pointer[provider.Provider]
}

// New returns a Provider.
func New(config Config) *Provider { return &Provider{config: config} }

// Begin starts a sign-in. It returns the URL to send the browser to, and the flow
// that Finish needs.
func (p *Provider) Begin(ctx context.Context, redirect string) (string, account.Flow, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client, _, err := p.oauthConfig(ctx, redirect)
	if err != nil {
		return "", account.Flow{}, err
	}
	flow := account.Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	return client.AuthCodeURL(flow.State, provider.Nonce(flow.Nonce), oauth2.S256ChallengeOption(flow.Verifier)), flow, nil
}

// Finish exchanges the code from the callback for the identity of the user.
func (p *Provider) Finish(ctx context.Context, flow account.Flow, redirect, code string) (account.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client, known, err := p.oauthConfig(ctx, redirect)
	if err != nil {
		return account.Identity{}, err
	}
	ctx = provider.ClientContext(ctx, p.config.Client)
	tokens, err := client.Exchange(ctx, code, oauth2.VerifierOption(flow.Verifier))
	if err != nil {
		return account.Identity{}, fmt.Errorf("exchange the code: %w", err)
	}
	raw, ok := tokens.Extra("id_token").(string)
	if !ok {
		return account.Identity{}, errors.New("the provider sent no ID token")
	}
	token, err := known.Verifier(&provider.Config{ClientID: p.config.ClientID}).Verify(ctx, raw)
	if err != nil {
		return account.Identity{}, fmt.Errorf("verify the ID token: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(flow.Nonce)) != 1 {
		return account.Identity{}, errors.New("the nonce of the ID token does not match this sign-in")
	}
	var c claims
	if err := token.Claims(&c); err != nil {
		return account.Identity{}, fmt.Errorf("read the ID token: %w", err)
	}
	if token.Subject == "" {
		return account.Identity{}, errors.New("the ID token has no subject")
	}
	if c.Party != "" && c.Party != p.config.ClientID || c.Party == "" && len(token.Audience) > 1 {
		return account.Identity{}, errors.New("the ID token was issued to another client (azp)")
	}
	return account.Identity{Issuer: p.config.Issuer, Subject: token.Subject, Email: c.Email, Verified: bool(c.Verified), Name: c.Name}, nil
}

// Issuer returns the issuer URL of the provider.
func (p *Provider) Issuer() string { return p.config.Issuer }

type claims struct {
	Email    string      `json:"email"`
	Verified lenientBool `json:"email_verified"`
	Name     string      `json:"name"`
	Party    string      `json:"azp"` // the client that the token was issued to
}

// lenientBool is a boolean that some providers send as a string.
type lenientBool bool

// UnmarshalJSON decodes true and "true" as true, and anything else as false.
func (t *lenientBool) UnmarshalJSON(data []byte) error {
	var value any
	err := json.Unmarshal(data, &value)
	*t = value == true || value == "true"
	return err
}

// oauthConfig returns the OAuth configuration with the discovered endpoints.
func (p *Provider) oauthConfig(ctx context.Context, redirect string) (*oauth2.Config, *provider.Provider, error) {
	known, err := p.discover(ctx)
	if err != nil {
		return nil, nil, err
	}
	return &oauth2.Config{
		ClientID: p.config.ClientID, ClientSecret: p.config.ClientSecret, Endpoint: known.Endpoint(), RedirectURL: redirect,
		Scopes: []string{provider.ScopeOpenID, "email", "profile"},
	}, known, nil
}

// discover fetches the provider's discovery document and caches it. After a
// failure the next call tries again. Concurrent calls do not wait for each other.
func (p *Provider) discover(ctx context.Context) (*provider.Provider, error) {
	if known := p.discovered.Load(); known != nil {
		return known, nil
	}
	found, err := provider.NewProvider(provider.ClientContext(ctx, p.config.Client), p.config.Issuer)
	if err != nil {
		return nil, fmt.Errorf("discover the identity provider: %w", err)
	}
	p.discovered.Store(found)
	return found, nil
}
