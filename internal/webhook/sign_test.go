package webhook_test

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/webhook"
)

// The vectors come from the documentation of GitHub and the Standard Webhooks
// specification, since receivers verify with libraries made for these.
func TestSignatures(t *testing.T) {
	t.Parallel()
	if got, want := webhook.SignService("It's a Secret to Everybody", []byte("Hello, World!")),
		"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"; got != want {
		t.Errorf("X-Service-Signature is %s, want %s", got, want)
	}
	at := time.Unix(1614265330, 999_000_000)
	if got, want := webhook.SignStandard("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", at, []byte(`{"test": 2432232314}`)),
		"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("webhook-signature is %s, want %s", got, want)
	}
}
