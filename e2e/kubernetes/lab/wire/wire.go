// Package wire asks AWS by the Query protocol, as far as the lab has to: it is
// what the lab itself and its cloud controller manager have in place of the SDK.
package wire

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Client asks moto_server.
type Client struct {
	Endpoint, Region string
	HTTP             *http.Client
}

// Ask makes a call. moto does not look at signatures, only at the service that
// they are for.
func (c Client) Ask(ctx context.Context, service, version, action string, answer any, parameters ...string) error {
	form := url.Values{"Action": {action}, "Version": {version}}
	for i := 0; i < len(parameters); i += 2 {
		form.Set(parameters[i], parameters[i+1])
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Endpoint+"/", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/"+c.Region+"/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	got, err := c.HTTP.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	if got.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", action, got.Status, body)
	}
	return xml.Unmarshal(body, answer)
}

// Instance is one that AWS has.
type Instance struct {
	ID      string `xml:"instanceId"`
	Type    string `xml:"instanceType"`
	Image   string `xml:"imageId"`
	State   string `xml:"instanceState>name"`
	Name    string `xml:"privateDnsName"`
	Address string `xml:"privateIpAddress"`
	Zone    string `xml:"placement>availabilityZone"`
	Tags    []Tag  `xml:"tagSet>item"`
}

// Tag is one of an instance's.
type Tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

// Tag returns the value of a tag.
func (i Instance) Tag(key string) string {
	for _, t := range i.Tags {
		if t.Key == key {
			return t.Value
		}
	}
	return ""
}

// Instances are all of the account's, for an hour after their end too.
func (c Client) Instances(ctx context.Context) ([]Instance, error) {
	var answer struct {
		Instances []Instance `xml:"reservationSet>item>instancesSet>item"`
	}
	err := c.Ask(ctx, "ec2", "2016-11-15", "DescribeInstances", &answer)
	return answer.Instances, err
}
