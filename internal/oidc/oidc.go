// Package oidc owns how people show who they are at an identity provider that
// the operator named: OpenID Connect with a code, PKCE, state and nonce. Who may
// sign in, and what follows, is decided by account.
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

// patience is how long a person waits for the provider.
const patience = 15 * time.Second

// Config is what the operator registered at the provider.
type Config struct {
	Issuer       string
	ClientID     string
	ClientSecret string // "" for a public client
	// Client reaches the provider.
	Client *http.Client
}

// Provider signs people in. It asks the provider who it is when it is first
// needed: a service starts without it.
type Provider struct {
	config Config
	known  atomic.Pointer[provider.Provider]
}

// New makes a provider.
func New(config Config) *Provider { return &Provider{config: config} }

// Begin is where a browser goes to sign in, and what it has to bring back.
func (p *Provider) Begin(ctx context.Context, redirect string) (string, account.Flow, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, _, err := p.client(ctx, redirect)
	if err != nil {
		return "", account.Flow{}, err
	}
	flow := account.Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	return client.AuthCodeURL(flow.State, provider.Nonce(flow.Nonce), oauth2.S256ChallengeOption(flow.Verifier)), flow, nil
}

// Finish turns the code that a browser came back with into who the person is.
func (p *Provider) Finish(ctx context.Context, flow account.Flow, redirect, code string) (account.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, known, err := p.client(ctx, redirect)
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
		return account.Identity{}, fmt.Errorf("check the ID token: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(flow.Nonce)) != 1 {
		return account.Identity{}, errors.New("the ID token was made for another sign-in")
	}
	var said claims
	if err := token.Claims(&said); err != nil {
		return account.Identity{}, fmt.Errorf("read the ID token: %w", err)
	}
	if token.Subject == "" {
		return account.Identity{}, errors.New("the ID token says nothing of who it is about")
	}
	return account.Identity{Issuer: p.config.Issuer, Subject: token.Subject, Email: said.Email, Verified: bool(said.Verified), Name: said.Name}, nil
}

// Issuer is the name of the provider.
func (p *Provider) Issuer() string { return p.config.Issuer }

type claims struct {
	Email    string `json:"email"`
	Verified truth  `json:"email_verified"`
	Name     string `json:"name"`
}

// truth is a boolean that some providers write as a text.
type truth bool

// UnmarshalJSON reads true and "true"; anything else is false.
func (t *truth) UnmarshalJSON(data []byte) error {
	var value any
	err := json.Unmarshal(data, &value)
	*t = value == true || value == "true"
	return err
}

// client is what speaks to the provider.
func (p *Provider) client(ctx context.Context, redirect string) (*oauth2.Config, *provider.Provider, error) {
	known, err := p.find(ctx)
	if err != nil {
		return nil, nil, err
	}
	return &oauth2.Config{
		ClientID: p.config.ClientID, ClientSecret: p.config.ClientSecret, Endpoint: known.Endpoint(), RedirectURL: redirect,
		Scopes: []string{provider.ScopeOpenID, "email", "profile"},
	}, known, nil
}

// find asks the provider who it is, once. A failure is tried again the next time;
// nobody waits for the question of somebody else.
func (p *Provider) find(ctx context.Context) (*provider.Provider, error) {
	if known := p.known.Load(); known != nil {
		return known, nil
	}
	found, err := provider.NewProvider(provider.ClientContext(ctx, p.config.Client), p.config.Issuer)
	if err != nil {
		return nil, fmt.Errorf("ask the identity provider who it is: %w", err)
	}
	p.known.Store(found)
	return found, nil
}
