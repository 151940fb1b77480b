package ami

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// releaseServer publishes the latest Kubernetes versions.
const releaseServer = "https://dl.k8s.io/release/"

// releasesTimeout is short because images can be listed without the release server.
const releasesTimeout = 5 * time.Second

// Supported returns the default versions to list, from the release server: all patches of
// the four newest minors. A minor counts from its second release.
func Supported(ctx context.Context, client *http.Client) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, releasesTimeout, fmt.Errorf("no answer within %s", releasesTimeout))
	defer cancel()
	stable, err := latestOf(ctx, client, "stable.txt")
	if err != nil {
		return nil, err
	}
	newest, latest := stable.minor, make([]release, minors)
	if stable.patch == 0 {
		newest--
	} else {
		latest[0] = stable
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range latest {
		if latest[i] == (release{}) {
			g.Go(func() (err error) {
				latest[i], err = latestOf(ctx, client, fmt.Sprintf("stable-%d.%d.txt", stable.major, newest-i))
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return upTo(latest), nil
}

// latestOf reads a file of the release server that contains a version.
func latestOf(ctx context.Context, client *http.Client, file string) (release, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, releaseServer+file, nil)
	if err != nil {
		return release{}, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return release{}, err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, 100))
	if err != nil {
		return release{}, fmt.Errorf("%s%s: %w", releaseServer, file, err)
	}
	if answer.StatusCode != http.StatusOK {
		return release{}, fmt.Errorf("%s%s: %s", releaseServer, file, answer.Status)
	}
	version, ok := parseRelease(string(text))
	if !ok {
		return release{}, fmt.Errorf("%s%s: %q is not a version", releaseServer, file, text)
	}
	return version, nil
}
