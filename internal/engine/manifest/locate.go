package manifest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// scalar is a field of an object with a single value, as the manifest has it.
type scalar struct{ object, path, value string }

// longestScalar is the longest value that is looked for in messages: longer ones are scripts and files.
const longestScalar = 256

// keepScalars records the fields of an object for Locate. Secrets and ConfigMaps are data.
func (c *Cluster) keepScalars(o *Entry) {
	if o.Kind == "Secret" || o.Kind == "ConfigMap" || o.Foreign {
		return
	}
	if c.scalars == nil {
		c.scalars, c.refers = map[string][]scalar{}, map[string][]string{}
	}
	c.walkScalars(o, "spec", o.Value["spec"])
}

func (c *Cluster) walkScalars(o *Entry, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if kind, name := StringField(v, "kind"), StringField(v, "name"); kind != "" && name != "" { // a reference
			c.refers[o.Title()] = append(c.refers[o.Title()], kind+"/"+name)
			return
		}
		for name, x := range v {
			c.walkScalars(o, path+"."+name, x)
		}
	case []any:
		for i, x := range v {
			c.walkScalars(o, fmt.Sprintf("%s[%d]", path, i), x)
		}
	case nil:
	default:
		text := fmt.Sprint(v)
		_, set := o.Lines[path]
		if set && !isAnywhere(path) && text != "" && len(text) <= longestScalar && !strings.Contains(text, "\n") {
			c.scalars[o.Title()] = append(c.scalars[o.Title()], scalar{o.Title(), path, text})
		}
	}
}

// isAnywhere reports whether messages about other fields contain the value of a field: the type of a scope is "cluster" or "namespace".
func isAnywhere(path string) bool {
	return path == "spec.clusterName" || path == "spec.region" || strings.HasSuffix(path, ".accessScope.type")
}

// Locate returns the origin of the field that a message of AWS is about, if the manifest has it: the field whose value
// the message quotes, or that it names. It looks in the part of the manifest that the origin names, then in its object,
// in the objects that this one refers to, and in those that refer to it. Where several fields fit equally, it returns the part
// that contains them.
func (c *Cluster) Locate(origin, message string) string {
	object, path := c.partOf(origin)
	if object == "" {
		return origin
	}
	if named := c.namedFirst(object, path, message); named != "" {
		return named
	}
	m := newMessage(message)
	own := c.scalars[object]
	part := slices.DeleteFunc(slices.Clone(own), func(s scalar) bool { return !isBelow(s.path, path) })
	var near, above []scalar
	for _, title := range c.referred(object) {
		near = append(near, c.scalars[title]...)
	}
	for title, others := range c.refers {
		if slices.Contains(others, object) {
			above = append(above, c.scalars[title]...)
		}
	}
	for _, look := range []struct {
		in    []scalar
		quote bool
	}{{part, true}, {near, true}, {above, true}, {part, false}, {near, false}} {
		if found, ok := m.best(look.in, look.quote); ok {
			if found.object == object && isBelow(path, found.path) { // less exact than the origin
				return origin
			}
			return c.Origin(found.object, found.path)
		}
	}
	return origin
}

// namedFirst returns the origin of the field with whose name a message begins, as in "configuration: …"; "" if the manifest has none.
func (c *Cluster) namedFirst(object, path, message string) string {
	field := regex.Of(`^([a-z][A-Za-z]+(?:\.[a-z][A-Za-z]+)*): `).FindStringSubmatch(message)
	if field == nil {
		return ""
	}
	name := field[1]
	if path != "" && c.Sets(object, path+"."+name) {
		return c.Origin(object, path+"."+name)
	}
	for _, title := range c.referred(object) {
		for _, s := range c.scalars[title] {
			if at := strings.Index(s.path+"[", "."+name+"["); at >= 0 {
				return c.Origin(title, s.path[:at+1+len(name)])
			}
		}
	}
	return ""
}

// partOf finds the object and the path in an origin.
func (c *Cluster) partOf(origin string) (object, path string) {
	words := strings.Fields(origin)
	for i, word := range words {
		if _, known := c.scalars[word]; !known {
			continue
		}
		if i+1 < len(words) {
			path = words[i+1]
		}
		return word, path
	}
	return "", ""
}

// referred lists an object and all that it refers to, directly or not.
func (c *Cluster) referred(object string) []string {
	out := []string{object}
	for i := 0; i < len(out); i++ {
		for _, other := range c.refers[out[i]] {
			if !slices.Contains(out, other) {
				out = append(out, other)
			}
		}
	}
	return out
}

// isBelow reports whether a path is another one, or below it. "" is above all.
func isBelow(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || above == "" || rest[0] == '.' || rest[0] == '[')
}

// message is a message of AWS, prepared for comparisons.
type message struct{ text, letters string }

func newMessage(text string) message { return message{text, lettersOf(text)} }

// lettersOf returns the letters of a text in lower case: "volume type" and "VolumeType" are the same.
func lettersOf(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}

// fit is how well a field fits a message. A smaller one is better.
type fit struct{ at, name, length int }

// best returns the field that fits a message best; of several that fit equally, what contains them. With quote, the
// message has its value.
func (m message) best(fields []scalar, quote bool) (found scalar, ok bool) {
	var best fit
	several := false // objects have a field that fits equally
	for _, s := range fields {
		f, fits := m.fits(s, quote)
		if !fits {
			continue
		}
		order := cmp.Or(longer(quote, found.value, s.value), cmp.Compare(f.at, best.at), cmp.Compare(best.name, f.name), cmp.Compare(best.length, f.length))
		switch {
		case !ok || order < 0:
			found, best, ok, several = s, f, true, false
		case order == 0 && s.object == found.object:
			found.path = common(found.path, s.path)
		case order == 0:
			several = true
		}
	}
	return found, ok && !several
}

// longer is negative if the second value contains the first one, and positive if the first one contains it: of values
// that a message quotes, it is about the longer one.
func longer(quote bool, a, b string) int {
	switch {
	case !quote || a == b:
		return 0
	case strings.Contains(b, a):
		return -1
	case strings.Contains(a, b):
		return 1
	}
	return 0
}

// fits reports whether a message is about a field.
func (m message) fits(s scalar, quote bool) (f fit, ok bool) {
	const clearValue, clearName = 3, 7 // characters of a value, and letters of a name, that say enough by themselves
	f.name = m.naming(s.path)
	if !quote {
		return f, f.name >= clearName
	}
	plain := strings.TrimPrefix(s.value, "v")
	for _, value := range []string{s.value, plain, regex.Of(`^(\d+\.\d+)\.\d+$`).ReplaceAllString(plain, "$1")} { // EKS takes no patch
		if f.at = m.quotes(value); f.at >= 0 {
			f.length = len(value)
			return f, f.length >= clearValue && value != "true" && value != "false" || f.name > 0
		}
	}
	return f, false
}

// quotes returns where a message contains a value as a word; -1 if it does not.
func (m message) quotes(value string) int {
	if !strings.Contains(m.text, value) { // most fields: no expression to compile
		return -1
	}
	at, err := regexp.Compile(`(?:^|[^\pL\d_-])(` + regexp.QuoteMeta(value) + `)(?:$|[^\pL\d_/.-]|[/.-](?:$|[^\pL\d]))`)
	if err != nil {
		return -1
	}
	if found := at.FindStringSubmatchIndex(m.text); found != nil {
		return found[2]
	}
	return -1
}

// lastWord is the last word of a name like "rootVolume".
const lastWord = `[A-Z]?[a-z]+$`

// naming returns how many letters of the name of a field a message contains; 0 for none: of iops, VolumeSize for
// rootVolume.size, or "instance type".
func (m message) naming(path string) int {
	const shortest = 4
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' || unicode.IsDigit(r) })
	if len(parts) == 0 {
		return 0
	}
	last := lettersOf(parts[len(parts)-1])
	longest := 0
	if len(last) >= shortest && last != "type" && last != "name" && last != "size" && strings.Contains(m.letters, last) {
		longest = len(last)
	}
	if len(parts) > 1 {
		words := regex.Of(lastWord).FindString(parts[len(parts)-2])
		if with := lettersOf(words) + last; strings.Contains(m.letters, with) || strings.Contains(m.letters, strings.TrimSuffix(lettersOf(words), "s")+last) {
			longest = max(longest, len(with))
		}
	}
	return longest
}

// common returns the path that contains two paths.
func common(a, b string) string {
	for ; a != ""; a = Parent(a) {
		if isBelow(b, a) {
			return a
		}
	}
	return ""
}
