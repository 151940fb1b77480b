package text_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

func TestCount(t *testing.T) {
	for want, noun := range map[string]string{
		"2 subnets": "subnet", "2 policies": "policy", "2 gateways": "gateway", "2 keys": "key", "2 bootstrap-secrets": "bootstrap-secrets", "2 user-data": "user-data",
	} {
		assert.Equal(t, want, text.Count(2, noun))
	}
	assert.Equal(t, "1 policy", text.Count(1, "policy"))
	assert.Equal(t, "0 subnets", text.Count(0, "subnet"))
}

func TestThousands(t *testing.T) {
	for number, want := range map[string]string{
		"0": "0", "999": "999", "1000": "1,000", "1243.50": "1,243.50", "0.0042": "0.0042", "1234567": "1,234,567",
	} {
		assert.Equal(t, want, text.Thousands(number))
	}
}

func TestWrap(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "",
		"one two three":                 "one two\nthree",
		"one\ntwo three":                "one two\nthree",
		"one\n\ntwo\n":                  "one\n\ntwo",
		"averyverylongword x":           "averyverylongword\nx",
		"list:\n\n  a  b\n  c  d\n":     "list:\n\n  a  b\n  c  d",
		"text\n  a  b\nmore text":       "text\n  a  b\nmore text",
		"größe öäü x":                   "größe öäü\nx",
		"\xff[31mone:\xff[0m two three": "\xff[31mone:\xff[0m two\nthree",
	} {
		assert.Equal(t, want, text.Wrap(in, 9), in)
	}
}

func TestWrapMessage(t *testing.T) {
	for in, want := range map[string]string{
		"short":                                  "short",
		"this is a line that is too long":        "this is a line that\nis too long",
		"  1. an indented line that is too long": "  1. an indented\n  line that is too\n  long",
		"see 'clusterawsadm cluster list --all-regions' for all": "see\n'clusterawsadm cluster list --all-regions'\nfor all",
		"Next: clusterawsadm cluster describe demo --region x":   "Next:\nclusterawsadm cluster describe demo --region x",
		"\xff[31merror:\xff[0m twenty column":                    "\xff[31merror:\xff[0m twenty column",
		"it isn't broken at 'a quote that":                       "it isn't broken at\n'a quote that",
	} {
		assert.Equal(t, want, text.WrapMessage(in, 20), in)
		assert.Equal(t, in, text.WrapMessage(in, 0))
	}
}
