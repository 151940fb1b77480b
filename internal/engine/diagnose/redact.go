package diagnose

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// redacted replaces a secret.
const redacted = "[secret]"

// Redacted removes secrets from a text that comes from a machine: what has the form of a secret,
// and the values of names such as password. It cannot know every secret: a word that looks like
// any other, and has no such name, stays.
func Redacted(text string) string {
	const digest, protected = "@sha256:", "\x00sha256:" // of an image, and not the end of a user and a password
	text = strings.ReplaceAll(text, digest, protected)
	for _, form := range forms() {
		text = regexp.MustCompile(form).ReplaceAllString(text, "${1}"+redacted+"${2}")
	}
	text = strings.ReplaceAll(text, protected, digest)
	text = replaceValues(text, proseValue, isProseSecret)
	text = replaceValues(text, schemeValue, func(m match) bool { return looksSecret(m.value) })
	text = replaceValues(text, flagValue, func(m match) bool { return !harmless(m.value) })
	text = replaceValues(text, passwordValue, isPassword)
	text = replaceValues(text, namedValue, isNamedSecret)
	return replaceValues(text, longWord, isLongSecret)
}

// forms are what secrets look like. What the groups 1 and 2 match stays.
func forms() []string {
	return []string{
		`()(?s)-----BEGIN [^-]*-----.*?(?:-----END [^-]*-----|\z)()`,
		`()(?m)(?:^[A-Za-z0-9+/=]{1,76}\r?\n)+-----END [^-]*-----()`, // the begin is cut off
		`()(?i)\bAGE-SECRET-KEY-1\w+()`,
		`()\b[a-z0-9]{6}\.[a-z0-9]{16}\b()`, // token of kubeadm
		`()\b(?:AKIA|ASIA)[A-Z0-9]{16}\b()`,
		`()\beyJ[\w-]{6,}\.[\w-]+(?:\.[\w-]*)?()`,               // JSON Web Token, RFC 7519
		`()\bk8s-aws-v1\.[\w-]+()`,                              // token for EKS
		`()\$(?:1|2[abxy]?|5|6|7|y|gy|argon2\w*)\$[^\s"',:]+()`, // hash of a password, crypt(5)
		`()\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|gl[a-z]{2,7}-[\w-]{16,}|xox[a-z]-[\w-]{8,}|xapp-[\w-]{8,}|npm_\w{30,}|pypi-[\w-]{20,}|dckr_pat_[\w-]{16,}|do[opr]_v1_\w{20,}|hf_\w{20,}|[sr]k_(?:live|test)_\w{10,}|sk-[\w-]{20,}|AIza[\w-]{30,}|ya29\.[\w-]+|hv[sbr]\.[\w-]{20,}|GOCSPX-[\w-]{20,}|1//0[\w-]{30,}|glsa_\w{20,}|tskey-[\w-]{16,}|shp[acs][at]_\w{16,}|dapi[0-9a-f]{32})\b()`,
		`(hooks\.slack\.com/services/)[\w/]+()`,
		`(discord(?:app)?\.com/api/webhooks/)[\w/-]+()`,
		`((?i)certificate key:?[ \t]*\r?\n[^\r\n]*?\b)[0-9a-f]{64}\b()`,                                               // kubeadm init phase upload-certs
		`(?im)('random' passwords[^\r\n]*)(?:\r?\n[^\r\n]*?\b[\w.-]+:\S+[ \t]*\r?$)+()`,                               // cloud-init, cc_set_passwords.py
		`((?im)(?:^|[\s/:"'])_auth(?:token)?[ \t]*=[ \t]*)\S+()`,                                                      // npmrc
		`((?i)\b(?:mysql|mariadb)\w*[ \t][^\r\n|;]*?[ \t]-p)[^\s-]\S*()`,                                              //
		`((?i)\b(?:sshpass[ \t]|(?:docker|podman|nerdctl|helm)\b[^\r\n|;]*?\blogin\b[^\r\n|;]*?[ \t])-p[ \t=]*)\S+()`, //
		`((?i)\becho[ \t]+(?:-n[ \t]+)?)[^|\r\n]*?([ \t]*\|[^|\r\n]*--password-stdin)`,                                //
		`((?i)\b(?:bindpw|rootpw|storepass|keypass|requirepass|masterauth)[ \t]+)\S+()`,                               // LDAP, keytool, Redis
		`((?i)\b(?:proxy-)?authorization\\*["']?[ \t]*[:=][ \t]*\[?\\*["']?)[^"'\\\r\n]+()`,
		`((?i)\b(?:set-)?cookie:[ \t]*)[^\r\n]+()`,
		`((?i)\bX-Amz-(?:Signature|Security-Token|Credential)(?:=|%3D|:[ \t]*))[^&\s"']+()`,
		`((?i)\bSignature=)[0-9a-f]{32,}()`,
		`([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s"'/?#]+(@[\w\[.-]+(?:[:/?\s"'#]|$))`,                 // user and password of a URL
		`([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s"'/?#@:]*:[^\s"'@]*[^\s"'@0-9/][^\s"'@]*(@[\w\[.-])`, // with a password that has a slash
		`((?i)["']auth["'][ \t]*:[ \t]*)"[^"]*"()`,                                            // of a registry, in config.json of Docker
		`((?i)\\"auth\\"[ \t]*:[ \t]*)\\"[^"]*\\"()`,
		`((?i)<\w*(?:password|passwd|secret|token)>)[^<]+(<)`,
		`((?i)\blogin[ \t]+\S+[ \t]+password[ \t]+)\S+()`, // netrc(5)
		`((?i)[\w.-]+:)[^\s"'|]+(["']?[ \t]*\|[ \t]*(?:sudo[ \t]+)?chpasswd)`,
		`((?i)\bcurl\b[^\r\n]*?[ \t](?:-u|--user)[ \t=]*)[^\s"']*:[^\s"']+()`,
		`((?i)(?:password|passwd|passphrase|secret|token)["']?:[ \t]*[|>][+-]?[0-9]?[ \t]*\r?\n)(?:[ \t]+[^\r\n]+\r?\n?)+()`, // a block of YAML
	}
}

const (
	quoted     = `\\+"[^"\r\n]*?\\+"|"(?:[^"\\\r\n]|\\.)*"?|'(?:[^'\r\n]|'')*'?`
	passwords  = `(?:[\w.-]*[_.-]|\b[A-Za-z0-9]*?)(?:password|passwd|passphrase|passwort|pwd)[0-9]*|\b(?:\w*[_-])?pass|\bpw` //nolint:gosec // an expression
	otherNames = `\b[\w.-]*?(?:token|secret|api[_-]?key|secret[_-]?key(?:[_-]base)?|psk|pre-?shared[_-]?key|access[_-]?key|private[_-]?key|certificate[_-]?key|encryption[_-]?key|signing[_-]?key|client[_-]?key[_-]?data|session[_-]?key|credentials?)`
	separator  = `\\*["']?[ \t]*(?::=|=>|[:=])[ \t]*`

	// Each expression has the groups before, name, between and value.
	proseValue    = `(?i)()(\b(?:password|passwd|passphrase|secret|token|api key))( +(?:(?:for (?:user )?\S+ )?(?:is|was|set to|of|generated):? *)?)(` + quoted + `|\S+)`
	schemeValue   = `(?i)()(\b(?:bearer|basic))([ \t]+)([A-Za-z0-9._~+/=-]{8,})`
	flagValue     = `(?i)(^|[\s"'\[,])(--?[\w-]*(?:token|password|passwd|passphrase|secret|api-?key|access-?key|private-?key|certificate-?key|encryption-?key))(?:(=|[ \t]+|["'],[ \t]*))(` + quoted + `|[^\s"']+)`
	passwordValue = `(?i)()(` + passwords + `)(` + separator + `)(` + quoted + `|[^\s"'][^\r\n]*)`
	namedValue    = `(?im)(^[ \t-]*|[a-z]+[ \t]|.)?(` + otherNames + `)(` + separator + `)(` + quoted + `|[^\s"'&,;}\])]+)`
	longWord      = `()()()([A-Za-z0-9+/_-]{20,}={0,2})`
)

// match is a part of a text that may be a secret.
type match struct {
	before, name, between, value string
	after                        string // the rest of the line
}

// replaceValues replaces the values of the matches that are secrets.
func replaceValues(text, expression string, secret func(match) bool) string {
	var b strings.Builder
	end := 0
	for _, at := range regexp.MustCompile(expression).FindAllStringSubmatchIndex(text, -1) {
		group := func(n int) string {
			if at[2*n] < 0 {
				return ""
			}
			return text[at[2*n]:at[2*n+1]]
		}
		after, _, _ := strings.Cut(text[at[1]:], "\n")
		m := match{group(1), group(2), group(3), group(4), after}
		if strings.HasPrefix(m.value, redacted) || !secret(m) {
			continue
		}
		value, rest := m.value, ""
		if expression == passwordValue {
			value, rest = password(m.value)
			rest = replaceValues(rest, expression, secret)
		}
		open, closing := quotes(value)
		b.WriteString(text[end:at[8]] + open + redacted + closing + rest)
		end = at[9]
	}
	return b.String() + text[end:]
}

// password splits what follows the name of a password: without quotes, it may contain spaces, and
// ends where another name with a value begins.
func password(text string) (value, rest string) {
	if open, _ := quotes(text); open != "" {
		return text, ""
	}
	if at := regex.Of(`[ \t,;&]+["']?[\w.-]+["']?[=:]|["'}\])]*[ \t]*$`).FindStringIndex(text); at != nil && at[0] > 0 {
		return text[:at[0]], text[at[0]:]
	}
	return text, ""
}

// quotes returns the quotes around a value.
func quotes(value string) (open, closing string) {
	bare := strings.TrimLeft(value, `\`)
	if bare == "" || bare[0] != '"' && bare[0] != '\'' {
		return "", ""
	}
	open = value[:len(value)-len(bare)+1]
	if strings.HasSuffix(value, open) && len(value) > len(open) {
		closing = open
	}
	return open, closing
}

// bare returns a value without its quotes.
func bare(value string) string { return strings.Trim(value, `\"'`) }

// harmless reports whether a value says that there is no secret, or stands for one.
func harmless(value string) bool {
	value = strings.ToLower(strings.TrimRight(bare(value), ".,;)}]"))
	return slices.Contains(
		[]string{"", "true", "false", "null", "nil", "<nil>", "none", "yes", "no", "redacted", "<redacted>", "[redacted]", "<none>", "-", "|", ">", "|-"},
		value,
	) ||
		len(value) > 2 && strings.Trim(value, "*x") == "" ||
		strings.HasPrefix(value, "$") && !strings.ContainsAny(value[1:], "$") && strings.Trim(value, "${}_abcdefghijklmnopqrstuvwxyz0123456789") == "" ||
		strings.HasPrefix(value, "-")
}

// looksSecret reports whether a word is not one of a sentence, a path or an address: it mixes
// letters with digits or capitals.
func looksSecret(word string) bool {
	word = strings.TrimRight(bare(word), ".,:;)}]")
	if len(word) < 5 || strings.Contains(word, "://") || strings.HasPrefix(word, "/") {
		return false
	}
	letters := strings.ContainsFunc(word, unicode.IsLetter)
	return letters && (strings.ContainsFunc(word, unicode.IsDigit) || strings.ContainsFunc(word[1:], unicode.IsUpper) || strings.ContainsAny(word, "!@#$%^&*"))
}

// isProseSecret decides on "password is hunter2" and "password hunter2".
func isProseSecret(m match) bool {
	word := strings.ToLower(strings.TrimRight(bare(m.value), ".,:;"))
	stated := strings.TrimSpace(m.between) != ""
	common := []string{
		"not",
		"expired",
		"invalid",
		"required",
		"missing",
		"empty",
		"wrong",
		"incorrect",
		"set",
		"too",
		"being",
		"now",
		"valid",
		"used",
		"a",
		"an",
		"the",
		"no",
		"older",
		"about",
		"still",
		"already",
		"only",
		"never",
		"for",
		"in",
		"from",
		"unauthorized",
		"disabled",
		"enabled",
		"locked",
		"unknown",
		"mounted",
		"created",
		"stored",
		"encrypted",
		"rotated",
		"immutable",
		"changed",
		"updated",
		"rejected",
		"accepted",
		"reset",
		"removed",
	}
	switch {
	case harmless(m.value), slices.Contains(common, word), strings.HasPrefix(m.value, "="), strings.HasPrefix(m.value, ":"):
		return false
	case strings.EqualFold(strings.TrimSpace(m.between), "of"), !stated && slices.Contains([]string{"secret", "token", "api key"}, strings.ToLower(m.name)):
		return false // "token of node-1", "secret db-1 mounted"
	case stated && strings.HasPrefix(strings.ToLower(m.name), "pass"):
		return true
	}
	return looksSecret(m.value)
}

// isPassword decides on the value of a name such as password.
func isPassword(m match) bool {
	isFolder := strings.HasPrefix(m.value, "/") && slices.Contains([]string{"pwd", "oldpwd"}, strings.ToLower(m.name))
	first, _ := password(m.value)
	return !isFolder && !harmless(first) && !strings.HasPrefix(m.value, "{")
}

// isNamedSecret decides on the value of a name such as token. A colon also ends a part of a
// sentence, and the name of an object in a message of the kubelet.
func isNamedSecret(m match) bool {
	value := bare(m.value)
	switch {
	case harmless(m.value),
		strings.HasPrefix(value, "{"),
		strings.HasPrefix(value, "["),
		strings.HasPrefix(value, "&"),
		strings.HasPrefix(value, "*"),
		strings.HasPrefix(value, "://"):
		return false
	case strings.EqualFold(m.name, "secret") && regex.Of(`^[a-z0-9-]+/[a-z0-9.-]+$`).MatchString(value): // secret="namespace/name"
		return false
	case strings.Contains(m.between, "="):
		return true
	case strings.HasPrefix(strings.TrimLeft(m.between, `\`), `"`) && strings.Contains(m.between, `": `) && !strings.HasPrefix(m.value, `"`) && !strings.HasPrefix(m.value, `\`):
		return looksSecret(m.value) // object "namespace"/"db-secret": not registered
	case regex.Of(`^[a-z]+[ \t]$`).MatchString(m.before): // failed to fetch secret: not found
		return looksSecret(m.value)
	}
	isQuoted := value != m.value
	return isQuoted || strings.TrimSpace(m.after) == "" || strings.ContainsAny(m.after[:1], "&,;}])\"'") || looksSecret(m.value)
}

// isLongSecret decides on a long word without spaces: a key in base64, and not the path of a file,
// a digest, a UID, or the name of an object.
func isLongSecret(m match) bool {
	word := strings.TrimRight(m.value, "=")
	padded := len(word) < len(m.value) && (m.after == "" || strings.ContainsAny(m.after[:1], " \t\r\"',;)}]"))
	const key, hex = 40, "0123456789abcdef"
	switch part := longestPart(word); {
	case strings.Trim(strings.ToLower(part), hex) == "": // a digest or an ID, or a path with one
		return false
	case padded && kinds(word, 1, 2):
		return true
	case len(word) < key:
		return false
	case len(part) >= key:
		return !kinds(word, 1, 2) || kinds(word, 3) || changes(part) > 0.35
	}
	return kinds(word, 1, 2, 3) && changes(word) > 0.25
}

// longestPart returns the longest part of a path, or of a name with hyphens.
func longestPart(word string) (longest string) {
	for _, part := range strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune("/_-", r) }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// kind returns 1 for small letters, 2 for capitals, 3 for digits, and 0 for all else.
func kind(c rune) int {
	switch {
	case 'a' <= c && c <= 'z':
		return 1
	case 'A' <= c && c <= 'Z':
		return 2
	case '0' <= c && c <= '9':
		return 3
	}
	return 0
}

// kinds reports whether a word has characters of all these kinds.
func kinds(word string, all ...int) bool {
	return !slices.ContainsFunc(all, func(k int) bool {
		return !strings.ContainsFunc(word, func(r rune) bool { return kind(r) == k })
	})
}

// changes is how often the kind of character changes in a word, as a part of its length: about
// 0.6 in base64, below 0.3 in names of several words.
func changes(word string) float64 {
	n := 0
	for i := 1; i < len(word); i++ {
		if a, b := kind(rune(word[i-1])), kind(rune(word[i])); a != b && a != 0 && b != 0 {
			n++
		}
	}
	return float64(n) / float64(len(word))
}
