package connection

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/stepmill/stepmill/internal/clock"
)

// signAWS returns a function that signs requests with AWS Signature Version 4.
func signAWS(service, region string, credentials aws.Credentials) func(*http.Request) error {
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = service == "s3" })
	return func(r *http.Request) error {
		hash, err := payloadHash(r)
		if err != nil {
			return err
		}
		if service == "s3" {
			r.Header.Set("X-Amz-Content-Sha256", hash)
		}
		return signer.SignHTTP(context.Background(), credentials, r, hash, service, region, clock.Now())
	}
}

func payloadHash(r *http.Request) (string, error) {
	if r.Body == nil || r.Body == http.NoBody {
		sum := sha256.Sum256(nil)
		return hex.EncodeToString(sum[:]), nil
	}
	body, err := r.GetBody()
	if err != nil {
		return "", err
	}
	defer body.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, body); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// awsService returns the name of the service in a host such as
// sqs.eu-central-1.amazonaws.com or bucket.s3.eu-central-1.amazonaws.com. For hosts
// outside of AWS it is the first part.
func awsService(host, region string) string {
	name, ours := strings.CutSuffix(strings.TrimSuffix(host, ".cn"), ".amazonaws.com")
	if !ours {
		first, _, _ := strings.Cut(host, ".")
		return first
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "."+region), ".dualstack")
	return name[strings.LastIndexByte(name, '.')+1:]
}
