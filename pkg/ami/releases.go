package ami

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// releaseServer is where Kubernetes says what its latest versions are.
const releaseServer = "https://dl.k8s.io/release/"

// askingReleases is how long the release server may take: images can be listed
// without it.
const askingReleases = 5 * time.Second

// Supported returns the versions of Kubernetes to list when none is asked for,
// as the release server tells: every patch of the four newest minors, a minor
// counting from its second release on.
func Supported(ctx context.Context, client *http.Client) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askingReleases, fmt.Errorf("no answer within %s", askingReleases))
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

// latestOf reads one of the files that name a version.
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
		return release{}, fmt.Errorf("%s%s: %q is no version", releaseServer, file, text)
	}
	return version, nil
}
