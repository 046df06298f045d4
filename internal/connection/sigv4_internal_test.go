package connection

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// TestAWSSignatures checks signatures that AWS has published: those of the Signature
// Version 4 test suite (awslabs/aws-c-auth, tests/aws-signing-test-suite/v4) and of
// "Signature Calculations for the Authorization Header" in the API reference of S3. The
// suite signs some paths before they are escaped, which cannot be sent; they are left out.
func TestAWSSignatures(t *testing.T) {
	t.Parallel()
	suite := aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	temporary := suite
	temporary.SessionToken = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"
	s3 := aws.Credentials{AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	suiteTime, s3Time := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC), time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	const example, bucket = "https://example.amazonaws.com", "https://examplebucket.s3.amazonaws.com"
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "X-Amz-Content-Sha256": {"9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"}}
	for name, tc := range map[string]struct {
		service     string
		credentials aws.Credentials
		at          time.Time
		method, url string
		header      http.Header
		body        string
		want        string
	}{
		"get-vanilla": {
			"service", suite, suiteTime, "GET", example + "/", nil, "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		},
		"get-vanilla-query-order-key-case": {
			"service", suite, suiteTime, "GET", example + "/?Param2=value2&Param1=value1", nil, "", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
		},
		"get-vanilla-utf8-query": {
			"service", suite, suiteTime, "GET", example + "/?ሴ=bar", nil, "", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
		},
		"get-header-value-trim": {
			"service", suite, suiteTime, "GET", example + "/", http.Header{"My-Header1": {" value1"}, "My-Header2": {` "a   b   c"`}}, "",
			"acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
		},
		"get-vanilla-with-session-token": {
			"service", temporary, suiteTime, "GET", example + "/", nil, "", "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8",
		},
		"post-vanilla-query": {
			"service", suite, suiteTime, "POST", example + "/?Param1=value1", nil, "", "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
		},
		"post-x-www-form-urlencoded": {
			"service", suite, suiteTime, "POST", example + "/", form, "Param1=value1", "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
		},
		"S3: get an object": {
			"s3", s3, s3Time, "GET", bucket + "/test.txt", http.Header{"Range": {"bytes=0-9"}}, "", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
		},
		"S3: put an object": {
			"s3", s3, s3Time, "PUT", bucket + "/test%24file.text",
			http.Header{"Date": {"Fri, 24 May 2013 00:00:00 GMT"}, "X-Amz-Storage-Class": {"REDUCED_REDUNDANCY"}}, "Welcome to Amazon S3.",
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
		},
		"S3: get the lifecycle of a bucket": {
			"s3", s3, s3Time, "GET", bucket + "/?lifecycle", nil, "", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
		},
		"S3: list objects": {
			"s3", s3, s3Time, "GET", bucket + "/?max-keys=2&prefix=J", nil, "", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(tc.at))
				r, err := http.NewRequestWithContext(t.Context(), tc.method, tc.url, strings.NewReader(tc.body))
				if err != nil {
					t.Fatal(err)
				}
				if tc.header != nil {
					r.Header = tc.header.Clone()
				}
				if tc.service == "s3" && tc.body != "" {
					r.ContentLength = 0 // the example does not sign it
				}
				if err := signAWS(tc.service, "us-east-1", tc.credentials)(r); err != nil {
					t.Fatal(err)
				}
				if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+tc.want) {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

func TestAWSService(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"sqs.eu-central-1.amazonaws.com": "sqs", "iam.amazonaws.com": "iam", "s3.eu-central-1.amazonaws.com": "s3", "bucket.s3.eu-central-1.amazonaws.com": "s3",
		"my.bucket.s3.amazonaws.com": "s3", "s3.dualstack.eu-central-1.amazonaws.com": "s3", "abc123.execute-api.eu-central-1.amazonaws.com": "execute-api",
		"sqs.cn-north-1.amazonaws.com.cn": "sqs", "minio.example.com": "minio",
	} {
		region := "eu-central-1"
		if strings.HasSuffix(host, ".cn") {
			region = "cn-north-1"
		}
		if got := awsService(host, region); got != want {
			t.Errorf("%s: %s", host, got)
		}
	}
}
