package etcd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// Client asks one member of etcd.
type Client struct{ http *http.Client }

// NewClient returns a client whose connections are made by dial.
func NewClient(dial func(context.Context) (net.Conn, error), config *tls.Config) *Client {
	return &Client{&http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		TLSClientConfig:     config,
		MaxIdleConnsPerHost: 1,
	}}}
}

// Close closes the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status is the state of a member.
type Status struct {
	Version string
	Leader  uint64 `json:",string"` // 0: it knows none
	DBSize  int64  `json:"dbSize,string"`
	Learner bool   `json:"isLearner"`
	Header  struct {
		Member   uint64 `json:"member_id,string"`
		Revision int64  `json:",string"`
	}
}

// Status returns the state of the member. It needs no quorum.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.ask(ctx, "maintenance/status", &s)
}

// Members returns the names of the members, as this one knows them.
func (c *Client) Members(ctx context.Context) (names []string, err error) {
	var list struct {
		Members []struct{ ID, Name string }
	}
	if err := c.ask(ctx, "cluster/member/list", &list); err != nil {
		return nil, err
	}
	for _, m := range list.Members {
		names = append(names, cmp.Or(m.Name, m.ID))
	}
	return names, nil
}

func (c *Client) ask(ctx context.Context, what string, into any) error {
	body, err := c.call(ctx, what)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(body, mostAnswer))
	if err != nil {
		return fmt.Errorf("etcd: %s: %w", what, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("etcd: %s: %w", what, err)
	}
	return nil
}

// mostAnswer is how many bytes of an answer are read, except for a snapshot.
const mostAnswer = 1 << 20

// call sends a request, and returns the body of the answer.
func (c *Client) call(ctx context.Context, what string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://localhost:2379/v3/"+what, bytes.NewReader([]byte("{}")))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("etcd: %s: %w", what, err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	if answer.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("etcd: %s: it does not serve its HTTP API: remove enable-grpc-gateway=false from etcd.local.extraArgs", what)
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 200)) // for the message
	return nil, fmt.Errorf("etcd: %s: %s: %s", what, answer.Status, bytes.TrimSpace(text))
}

// Snapshot writes a snapshot of the database of the member. Its end is a SHA-256 of what is
// before it, which etcd adds.
func (c *Client) Snapshot(ctx context.Context, w io.Writer) error {
	body, err := c.call(ctx, "maintenance/snapshot")
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was only read
	for d := json.NewDecoder(body); ; {
		var message struct {
			Result struct {
				Blob []byte
			}
			Error *struct{ Message string }
		}
		err := d.Decode(&message)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("etcd: the snapshot is cut off: %w", err)
		case message.Error != nil:
			return fmt.Errorf("etcd: snapshot: %s", message.Error.Message)
		}
		if _, err := w.Write(message.Result.Blob); err != nil {
			return err
		}
	}
}
