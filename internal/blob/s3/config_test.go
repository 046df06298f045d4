package s3_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/blob/s3"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	inRegion := func(name string) string {
		if name == "AWS_DEFAULT_REGION" {
			return "eu-west-1"
		}
		return environment(name)
	}
	for _, tc := range []struct {
		url    string
		getenv func(string) string
		want   s3.Config
	}{
		{"s3://files?region=eu-central-1", environment, s3.Config{Bucket: "files", Region: "eu-central-1"}},
		{"s3://files/", inRegion, s3.Config{Bucket: "files", Region: "eu-west-1"}},
		{"s3://files/a/b/?region=us-east-2", inRegion, s3.Config{Bucket: "files", Prefix: "a/b/", Region: "us-east-2"}},
		{
			"s3://files/a?endpoint=https://minio.example:9000", environment,
			s3.Config{Bucket: "files", Prefix: "a/", Region: "us-east-1", Endpoint: "https://minio.example:9000"},
		},
	} {
		tc.want.AccessKeyID, tc.want.SecretAccessKey = "AKIDEXAMPLE", "secret"
		got, err := s3.ParseURL(tc.url, tc.getenv)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", tc.url, err, diff)
		}
	}
}

func TestParseURLRejects(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://files?region=x":                        "must have the form s3://",
		"s3:files?region=x":                             "must have the form s3://",
		"s3:///prefix?region=x":                         "does not name a bucket",
		"s3://files:9000/?region=x":                     "does not name a bucket",
		"s3://files":                                    "region",
		"s3://key:hunter2@files?region=x":               "must not contain credentials",
		"s3://files?region=x&secret_access_key=hunter2": `has the parameter "secret_access_key"`,
		"s3://files?region=x&region=y":                  "twice",
		"s3://files?endpoint=minio.example":             "endpoint",
		"s3://files?endpoint=ftp://minio.example":       "endpoint",
		"s3://files?endpoint=http://a:hunter2@minio":    "endpoint",
		"s3://files?region=%zzhunter2":                  "malformed",
		"s3://fi les/%zzhunter2":                        "malformed",
	} {
		_, err := s3.ParseURL(url, environment)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %q", url, err, want)
		}
	}
	if _, err := s3.ParseURL("s3://files?region=x", func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("without credentials: %v", err)
	}
}
