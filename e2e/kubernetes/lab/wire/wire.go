// Package wire calls AWS with the Query protocol, for the lab and its cloud controller
// manager, which do not use the SDK.
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

// Client calls moto_server.
type Client struct {
	Endpoint, Region string
	HTTP             *http.Client
}

// Ask makes a call. moto does not check signatures, and reads only the service from them.
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

// Instance is an instance in AWS.
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

// Tag is a tag of an instance.
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

// Instances returns all instances of the account, including those terminated less than an
// hour ago.
func (c Client) Instances(ctx context.Context) ([]Instance, error) {
	var answer struct {
		Instances []Instance `xml:"reservationSet>item>instancesSet>item"`
	}
	err := c.Ask(ctx, "ec2", "2016-11-15", "DescribeInstances", &answer)
	return answer.Instances, err
}
