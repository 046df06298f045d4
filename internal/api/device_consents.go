package api

import (
	"context"
	"math"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/transport"
)

type deviceConsentBody struct {
	State       string  `json:"state"`
	UserCode    string  `json:"user_code"`
	URL         string  `json:"verification_url"`
	CompleteURL *string `json:"verification_url_complete"`
	ExpiresAt   string  `json:"expires_at"`
	RetryAfter  int     `json:"retry_after"`
}

func showDeviceConsent(d connection.DeviceConsent) *transport.Reply {
	return transport.OK(deviceConsentBody{d.State, d.UserCode, d.URL, orNull(d.CompleteURL), clock.Format(d.ExpiresAt), seconds(d.Interval)})
}

// connectDevice begins a connection whose consent is given on any device. The browser is
// not sent back, so its address does not matter.
func (h *consents) connectDevice(ctx context.Context, in *newConnectionRequest) (*transport.Reply, error) {
	wanted, err := in.wanted()
	if err != nil {
		return nil, err
	}
	begun, err := h.consents.ConnectDevice(ctx, transport.Actor(ctx), wanted)
	if err != nil {
		return nil, err
	}
	return showDeviceConsent(begun), nil
}

// reconnectDevice begins to renew such a consent.
func (h *consents) reconnectDevice(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	begun, err := h.consents.ReconnectDevice(ctx, transport.Actor(ctx), in.ID)
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
func (h *consents) pollDevice(ctx context.Context, in *confirmConsentRequest) (*transport.Reply, error) {
	if err := required(member{"/state", in.Body.State}); err != nil {
		return nil, err
	}
	outcome, err := h.consents.PollDevice(ctx, transport.Actor(ctx), *in.Body.State)
	if err != nil {
		return nil, err
	}
	if outcome.Connection == nil {
		return transport.OK(deviceOutcomeBody{RetryAfter: new(seconds(outcome.Wait))}), nil
	}
	body, err := describeConnection(ctx, h.connections.connections, *outcome.Connection)
	if err != nil {
		return nil, err
	}
	return transport.OK(deviceOutcomeBody{Connection: &body}), nil
}

// seconds returns a duration in whole seconds, rounded up.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
