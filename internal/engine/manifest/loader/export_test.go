package loader

import "slices"

// KeyedLists returns the paths of the items of the lists of a kind that have a key.
func KeyedLists(kind string) (paths []string) {
	for _, k := range keyedLists() {
		if slices.Contains(k.kinds, kind) {
			paths = append(paths, k.path)
		}
	}
	return paths
}

// GoneFields lists the fields that are reported as gone: "Kind path".
func GoneFields() (all []string) {
	for _, row := range goneFields() {
		for _, kind := range row.kinds {
			all = append(all, kind+" "+row.path)
		}
	}
	return all
}
