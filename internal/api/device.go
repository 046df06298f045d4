package api

import (
	"context"
	"math"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
)

type deviceConsentBody struct {
	State       string  `json:"state"`
	UserCode    string  `json:"user_code"`
	URL         string  `json:"verification_url"`
	CompleteURL *string `json:"verification_url_complete"`
	ExpiresAt   string  `json:"expires_at"`
	RetryAfter  int     `json:"retry_after"`
}

func showDeviceConsent(d connection.DeviceConsent) *reply {
	return ok(deviceConsentBody{d.State, d.UserCode, d.URL, orNull(d.CompleteURL), clock.Format(d.ExpiresAt), seconds(d.Interval)})
}

// connectDevice begins a connection whose consent is given on any device. The browser is
// not sent back, so its address does not matter.
func (s *Server) connectDevice(ctx context.Context, in *newConnectionRequest) (*reply, error) {
	wanted, err := in.wanted()
	if err != nil {
		return nil, err
	}
	begun, err := s.Connections.ConnectDevice(ctx, actorOf(ctx), wanted)
	if err != nil {
		return nil, err
	}
	return showDeviceConsent(begun), nil
}

// reconnectDevice begins to renew such a consent.
func (s *Server) reconnectDevice(ctx context.Context, in *connectionRequest) (*reply, error) {
	begun, err := s.Connections.ReconnectDevice(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return showDeviceConsent(begun), nil
}

type deviceOutcomeBody struct {
	Connection *connectionBody `json:"connection"`
	RetryAfter *int            `json:"retry_after"`
}

// pollDevice reports whether the person has consented.
func (s *Server) pollDevice(ctx context.Context, in *confirmConsentRequest) (*reply, error) {
	if err := required(member{"/state", in.Body.State}); err != nil {
		return nil, err
	}
	outcome, err := s.Connections.PollDevice(ctx, actorOf(ctx), *in.Body.State)
	if err != nil {
		return nil, err
	}
	if outcome.Connection == nil {
		return ok(deviceOutcomeBody{RetryAfter: new(seconds(outcome.Wait))}), nil
	}
	body, err := s.describeConnection(ctx, *outcome.Connection)
	if err != nil {
		return nil, err
	}
	return ok(deviceOutcomeBody{Connection: &body}), nil
}

// seconds returns a duration in whole seconds, rounded up.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
