package manifest

import "strings"

// Forget removes the positions and the texts of all objects.
func (c *Cluster) Forget() { c.where, c.scalars, c.refers = map[string]Position{}, nil, nil }

// Add records the positions and the texts of the fields of an object.
func (c *Cluster) Add(o *Entry) {
	c.keepScalars(o)
	for path, at := range o.Lines {
		c.where[o.whereKey(path)] = at
	}
	for _, m := range olderPaths(o.Kind) {
		for path, at := range o.Lines {
			if rest, ok := strings.CutPrefix(path, m[1]); ok && o.Version == VersionOld {
				c.where[o.whereKey(m[0]+rest)] = at
			}
		}
	}
}

// At returns the position of a field, or of its nearest parent that is set. The object is
// "Kind/name". For an object that is not in the input, At returns the zero Position.
func (c *Cluster) At(object, path string) Position {
	for p := path; p != ""; p = Parent(p) {
		if at, ok := c.where[object+" "+p]; ok {
			return at
		}
	}
	return c.where[object]
}

// Sets reports whether the manifest sets a field. Defaults do not count.
func (c *Cluster) Sets(object, path string) bool {
	_, set := c.where[object+" "+path]
	return set
}

// Origin returns a position and a field for plans and errors: "cluster.yaml:31
// AWSCluster/prod spec.network.vpc".
func (c *Cluster) Origin(object, path string) string {
	words := []string{object}
	if at := c.At(object, path); at.File != "" {
		words = []string{at.String(), object}
	}
	if path != "" {
		words = append(words, path)
	}
	return strings.Join(words, " ")
}
