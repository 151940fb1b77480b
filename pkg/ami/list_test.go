package ami_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/ami"
)

func rows(images []ami.Image) (all []string) {
	for _, i := range images {
		all = append(all, fmt.Sprintf("%s %s %s %s %s", i.Architecture, i.Region, i.Version, i.OS, i.Name))
	}
	return all
}

func releases(versions ...string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) { return versions, nil }
}

func TestListOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Page: 7})
		var told []string
		got, err := ami.List(t.Context(), a.Config(), ami.Query{
			Owner: ami.Owner, OS: []string{"flatcar-stable", "ubuntu-24.04"}, Regions: []string{"eu-west-1", "us-east-1"},
			Releases: releases("v1.34.1", "v1.34.0", "v1.34.2"),
			Progress: func(done, total int, region string, err error) {
				told = append(told, fmt.Sprint(done, total, region, err))
			},
		})
		require.NoError(t, err)
		assert.Empty(t, got.Failed)
		assert.Equal(t, []string{
			"x86_64 eu-west-1 v1.34.0 flatcar-stable capa-ami-flatcar-stable-v1.34.0-1755303200",
			"x86_64 eu-west-1 v1.34.0 ubuntu-24.04 capa-ami-ubuntu-24.04-v1.34.0-1755296000",
			"x86_64 eu-west-1 v1.34.2 flatcar-stable capa-ami-flatcar-stable-v1.34.2-1765671200",
			"x86_64 eu-west-1 v1.34.2 ubuntu-24.04 capa-ami-ubuntu-24.04-v1.34.2-1765664000",
			"x86_64 us-east-1 v1.34.0 flatcar-stable capa-ami-flatcar-stable-v1.34.0-1755303200",
			"x86_64 us-east-1 v1.34.0 ubuntu-24.04 capa-ami-ubuntu-24.04-v1.34.0-1755296000",
			"x86_64 us-east-1 v1.34.2 flatcar-stable capa-ami-flatcar-stable-v1.34.2-1765671200",
			"x86_64 us-east-1 v1.34.2 ubuntu-24.04 capa-ami-ubuntu-24.04-v1.34.2-1765664000",
			"arm64 eu-west-1 v1.34.0 flatcar-stable capa-ami-flatcar-stable-v1.34.0-1755303800",
			"arm64 eu-west-1 v1.34.0 ubuntu-24.04 capa-ami-ubuntu-24.04-v1.34.0-1755296600",
			"arm64 eu-west-1 v1.34.2 flatcar-stable capa-ami-flatcar-stable-v1.34.2-1765671800",
			"arm64 eu-west-1 v1.34.2 ubuntu-24.04 capa-ami-ubuntu-24.04-v1.34.2-1765664600",
			"arm64 us-east-1 v1.34.0 flatcar-stable capa-ami-flatcar-stable-v1.34.0-1755303800",
			"arm64 us-east-1 v1.34.0 ubuntu-24.04 capa-ami-ubuntu-24.04-v1.34.0-1755296600",
			"arm64 us-east-1 v1.34.2 flatcar-stable capa-ami-flatcar-stable-v1.34.2-1765671800",
			"arm64 us-east-1 v1.34.2 ubuntu-24.04 capa-ami-ubuntu-24.04-v1.34.2-1765664600",
		}, rows(got.Images))
		assert.Len(t, told, 2)
		assert.Equal(t, time.Unix(1755303200, 0).UTC(), got.Images[0].Created)
	})
}

// Images on which upstream's list panics or that it misinterprets.
func TestListStrangeImages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		late := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		a.Edit(func(s *awssim.State) {
			for n, name := range []string{"nohyphen", "capa-ami-ubuntu-24.04-v1.34.2-rc.9-1900000000", "capa-ami-ubuntu-24.04-1.33.0-00-1900000000", "capa-ami-ubuntu-24.04-v1.34.2-rc.9"} {
				id := fmt.Sprintf("ami-strange%d", n)
				s.EC2.Images[id] = &awssim.Image{
					Thing:        awssim.Thing{ID: id, Given: true},
					Name:         name,
					Owner:        ami.Owner,
					Architecture: ami.X8664,
					RootDevice:   "/dev/sda1",
					Created:      late,
				}
			}
		})
		got, err := ami.List(t.Context(), a.Config(), ami.Query{
			Owner: ami.Owner, OS: []string{"ubuntu-24.04"}, Architectures: []string{ami.X8664}, Regions: []string{"us-east-1"},
			Releases: releases("v1.34.2", "v1.33.0"),
		})
		require.NoError(t, err)
		assert.Equal(t, []string{
			"x86_64 us-east-1 v1.34.2 ubuntu-24.04 capa-ami-ubuntu-24.04-v1.34.2-1765664000",
			"x86_64 us-east-1 v1.33.0 ubuntu-24.04 capa-ami-ubuntu-24.04-1.33.0-00-1900000000",
		}, rows(got.Images))
		for _, version := range []string{"v1.33.0", "1.33.0"} { // both spellings find both
			got, err = ami.List(t.Context(), a.Config(), ami.Query{
				Owner: ami.Owner, Version: version, OS: []string{"ubuntu-24.04"}, Architectures: []string{ami.X8664}, Regions: []string{"us-east-1"},
			})
			require.NoError(t, err)
			assert.Equal(t, []string{"x86_64 us-east-1 " + version + " ubuntu-24.04 capa-ami-ubuntu-24.04-1.33.0-00-1900000000"}, rows(got.Images))
		}
	})
}

// An error in a region is reported and does not affect the others.
func TestListWithoutSomeRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		regions, err := ami.Regions(t.Context(), a.Config())
		require.NoError(t, err)
		assert.True(t, slices.IsSorted(regions))
		assert.Contains(t, regions, "af-south-1", "opted in to")
		assert.NotContains(t, regions, "me-south-1", "not opted in to")
		assert.Subset(t, regions, ami.BuiltInRegions())
		got, err := ami.List(t.Context(), a.Config(), ami.Query{
			Owner: ami.Owner, Version: "v1.34.2", OS: []string{"ubuntu-24.04"}, Architectures: []string{ami.Arm64},
			Regions: append(regions, "me-south-1", "mars-north-1"),
		})
		require.NoError(t, err)
		assert.Len(t, got.Images, len(ami.BuiltInRegions()))
		require.Len(t, got.Failed, 2)
		require.ErrorContains(t, got.Failed["me-south-1"], "AuthFailure")
		require.ErrorContains(t, got.Failed["mars-north-1"], "no such host")
	})
}

// Without the release server, the images determine the versions.
func TestListOffline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		got, err := ami.List(t.Context(), a.Config(), ami.Query{
			Owner: ami.Owner, Regions: []string{"us-east-1"}, Architectures: []string{ami.X8664},
			Releases: func(context.Context) ([]string, error) { return nil, errors.New("no such host") },
		})
		require.NoError(t, err)
		require.EqualError(t, got.Releases, "no such host")
		var versions []string
		for _, i := range got.Images {
			versions = append(versions, i.Version)
		}
		assert.Equal(t, []string{"v1.34.0", "v1.34.2", "v1.33.0", "v1.32.4", "v1.31.0"}, slices.Compact(versions))
		assert.Len(t, got.Images, 15)
		known, err := ami.Known(t.Context(), a.Config(), "us-east-1", ami.Owner)
		require.NoError(t, err)
		assert.Equal(t, ami.Published{
			OS:       []string{"flatcar-stable", "ubuntu-22.04", "ubuntu-24.04"},
			Versions: []string{"v1.28.3", "v1.30.0", "v1.31.0", "v1.32.4", "v1.33.0", "v1.34.0", "v1.34.2"},
		}, known)
	})
}

// All regions are queried at the same time, with one call each.
func TestListIsQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Latency: 400 * time.Millisecond})
		began := time.Now()
		_, err := ami.List(t.Context(), a.Config(), ami.Query{Owner: ami.Owner, Version: "v1.34.2", Regions: ami.BuiltInRegions()})
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Since(began), time.Second, "on the virtual clock")
		assert.Len(t, a.Calls(), 15)
	})
}

func TestListInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("enough"))
		_, err := ami.List(ctx, awssim.New(awssim.Options{}).Config(), ami.Query{Owner: ami.Owner, Version: "v1.34.2", Regions: []string{"us-east-1"}})
		require.EqualError(t, err, "enough")
	})
}
