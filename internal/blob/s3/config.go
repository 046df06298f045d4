package s3

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Config says where a bucket is and how to get access to it.
type Config struct {
	Bucket string
	// Prefix precedes the ids in the keys of objects. It is empty or ends with a
	// slash.
	Prefix string
	Region string
	// Endpoint is the URL of a server other than AWS. Its buckets are addressed by
	// path.
	Endpoint string

	AccessKeyID, SecretAccessKey, SessionToken string
}

// ParseURL parses a URL such as s3://bucket/prefix?region=eu-central-1, or
// s3://bucket?endpoint=https://minio.example:9000 for a server other than AWS.
// Credentials come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
// AWS_SESSION_TOKEN, never from the URL: URLs appear in logs and process lists.
// The region defaults to AWS_REGION or AWS_DEFAULT_REGION.
func ParseURL(text string, getenv func(string) string) (Config, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Config{}, errors.New("the URL of the bucket is malformed") // err repeats the text
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Config{}, errors.New("the query of the bucket's URL is malformed")
	}
	for name, values := range query {
		if !slices.Contains([]string{"endpoint", "region"}, name) {
			return Config{}, fmt.Errorf("the URL of the bucket has the parameter %q; only endpoint and region are allowed", name)
		}
		if len(values) > 1 {
			return Config{}, fmt.Errorf("the URL of the bucket has the parameter %q twice", name)
		}
	}
	c := Config{
		Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), Region: query.Get("region"), Endpoint: query.Get("endpoint"),
		AccessKeyID: getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: getenv("AWS_SESSION_TOKEN"),
	}
	if c.Prefix != "" {
		c.Prefix += "/"
	}
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if c.Region == "" {
			c.Region = getenv(name)
		}
	}
	if c.Region == "" && c.Endpoint != "" {
		c.Region = "us-east-1" // what servers other than AWS expect
	}
	switch {
	case u.Scheme != "s3" || u.Opaque != "" || u.Fragment != "":
		return Config{}, errors.New("the URL of the bucket must have the form s3://bucket/prefix")
	case u.User != nil:
		return Config{}, errors.New("the URL of the bucket must not contain credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	return c, c.check()
}

func (c Config) check() error {
	switch {
	case c.Bucket == "" || strings.Contains(c.Bucket, ":"):
		return errors.New("the URL of the bucket does not name a bucket: s3://bucket/prefix")
	case c.Region == "":
		return errors.New("the region of the bucket is unknown; add ?region=… to its URL or set AWS_REGION")
	case c.AccessKeyID == "" || c.SecretAccessKey == "":
		return errors.New("there are no credentials for the bucket; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case c.Endpoint == "":
		return nil
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("the endpoint of the bucket must be a URL such as https://minio.example:9000")
	}
	return nil
}
