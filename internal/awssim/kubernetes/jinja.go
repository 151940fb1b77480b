package kubernetes

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// rendered returns a cloud-config as cloud-init reads it. If it begins with "## template: jinja", jinja2 renders it first, and cloud-init
// ignores one that jinja2 cannot render (cloudinit/handlers/jinja_template.py). Values that are not simulated stay as they are written.
func (svc *Service) rendered(i *ec2.Instance, data []byte) ([]byte, error) {
	text, is := bytes.CutPrefix(data, []byte("## template: jinja\n"))
	if !is {
		return data, nil
	}
	out, err := renderJinja(string(text), svc.instanceData(i))
	if err != nil {
		return nil, fmt.Errorf("cloud-init: Ignoring jinja template for part-001: %w", err)
	}
	return []byte(out), nil
}

// instanceData are the variables of a machine: a map, a text, or nil for a value that is not simulated ("Instance metadata" in the
// documentation of cloud-init, "Instance metadata categories" in the EC2 user guide).
func (svc *Service) instanceData(i *ec2.Instance) map[string]any {
	address := svc.address(i, "")
	host := "ip-" + strings.ReplaceAll(address, ".", "-") + "." + svc.EC2.Domain()
	if i.HostnameType == "resource-name" {
		host = i.ID + "." + svc.EC2.Domain()
	}
	standard := map[string]any{
		"availability_zone": i.Zone, "region": svc.EC2.Region, "instance_id": i.ID, "local_hostname": host, "cloud_name": "aws", "platform": "ec2",
	}
	for name := range strings.FieldsSeq(`_beta_keys cloud_id distro distro_release distro_version kernel_release machine public_ssh_keys python_version
		subplatform system_platform userdata variant vendordata`) {
		standard[name] = nil
	}
	meta := map[string]any{
		"instance_id": i.ID, "instance_type": i.Type, "ami_id": i.Image, "ami_launch_index": fmt.Sprint(i.Index), "local_hostname": host, "hostname": host,
		"local_ipv4": address,
		"placement": map[string]any{
			"availability_zone": i.Zone, "region": svc.EC2.Region, "availability_zone_id": nil, "group_name": nil, "host_id": nil, "partition_number": nil,
		},
	}
	for name := range strings.FieldsSeq(`ami_manifest_path ancestor_ami_ids autoscaling block_device_mapping elastic_gpus elastic_inference events hibernation
		iam identity_credentials instance_action instance_life_cycle ipv6 kernel_id mac managed_ssh_keys metrics network product_codes profile public_keys
		ramdisk_id reservation_id security_groups services spot system tags public_hostname public_ipv4`) {
		meta[name] = nil
	}
	all := map[string]any{"v1": standard, "ds": map[string]any{
		"meta_data": meta, "dynamic": nil, "_doc": nil, "_metadata_api_version": nil, "user_data": nil,
	}}
	for name := range strings.FieldsSeq(`merged_cfg merged_system_cfg sys_info system_info base64_encoded_keys sensitive_keys vendordata2
		range dict lipsum cycler joiner namespace`) {
		all[name] = nil
	}
	for name, value := range standard {
		all[name] = value
	}
	return all
}

// jinja renders a template.
type jinja struct {
	all  string
	at   int
	vars map[string]any
	out  strings.Builder
	open []string // names of the statements that have begun and not ended
	mute int      // number of open statements whose text is omitted
	soft int      // number of open conditions
}

// renderJinja renders variables, constants, comments and raw text of a template. It renders the first branch of each condition, and omits
// loops and macros.
func renderJinja(text string, vars map[string]any) (string, error) {
	j := &jinja{all: text, vars: vars}
	for {
		tag := regex.Of(`\{[{%#]`).FindStringIndex(j.all[j.at:])
		if tag == nil {
			break
		}
		j.write(j.all[j.at : j.at+tag[0]])
		j.at += tag[0]
		if err := j.tag(); err != nil {
			return "", fmt.Errorf("%w on line %d", err, 2+strings.Count(j.all[:j.at], "\n"))
		}
	}
	if len(j.open) > 0 {
		return "", fmt.Errorf("unexpected end of template. Jinja was looking for the end of %q", j.open[len(j.open)-1])
	}
	j.write(j.all[j.at:])
	return j.out.String(), nil
}

func (j *jinja) write(text string) {
	if j.mute == 0 {
		j.out.WriteString(text)
	}
}

func (j *jinja) tag() error {
	rest := j.all[j.at:]
	switch {
	case rest[1] == '#':
		end := strings.Index(rest[2:], "#}")
		if end < 0 {
			return fmt.Errorf("missing end of comment tag")
		}
		j.at += 2 + end + 2
		return nil
	case regex.Of(`^\{%[-+]?\s*raw\s*-?%\}`).MatchString(rest):
		raw := regex.Of(`^(?s)\{%[-+]?\s*raw\s*-?%\}(.*?)\{%[-+]?\s*endraw\s*[-+]?%\}\n?`).FindStringSubmatch(rest)
		if raw == nil {
			return fmt.Errorf("missing end of raw directive")
		}
		j.write(raw[1])
		j.at += len(raw[0])
		return nil
	}
	words, length, err := jinjaWords(rest)
	if err != nil {
		return err
	}
	j.at += length
	if rest[1] == '%' {
		return j.statement(words)
	}
	if err := jinjaExpression(words, j.soft > 0); err != nil {
		return err
	}
	if j.mute > 0 {
		return nil
	}
	value, err := j.value(words, rest[:length])
	j.write(value)
	return err
}

// jinjaWords splits a tag, and returns its length.
func jinjaWords(tag string) (words []string, length int, err error) {
	end, at := regex.Of(`^\s*[-+]?%\}\n?`), 2
	if tag[1] == '{' {
		end = regex.Of(`^\s*-?\}\}`)
	}
	if at < len(tag) && (tag[at] == '-' || tag[at] == '+') {
		at++
	}
	depth := 0
	for {
		rest := tag[at:]
		if closes := end.FindString(rest); closes != "" && depth == 0 {
			return words, at + len(closes), nil
		}
		word := regex.Of(`^\s*(?s:[\pL_][\pL\pN_]*|[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|0[xob][0-9a-fA-F_]+|` +
			`'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|//|\*\*|[=!<>]=|[-+*/%~<>=.:|,;()\[\]{}])`).FindString(rest)
		if word == "" {
			if rest = strings.TrimSpace(rest); rest == "" {
				return nil, 0, fmt.Errorf("unexpected end of template")
			}
			return nil, 0, fmt.Errorf("unexpected char %q", []rune(rest)[0])
		}
		at += len(word)
		word = strings.TrimSpace(word)
		switch {
		case strings.Contains("([{", word):
			depth++
		case strings.Contains(")]}", word):
			depth--
		}
		if depth < 0 {
			return nil, 0, fmt.Errorf("unexpected '%s'", word)
		}
		words = append(words, word)
	}
}

// jinjaExpression checks that an expression alternates between values and operators, and that its filters exist.
func jinjaExpression(words []string, soft bool) error {
	filters := strings.Fields(`abs attr batch capitalize center count d default dictsort e escape filesizeformat first float forceescape format groupby
		indent int items join last length list lower map max min pprint random reject rejectattr replace reverse round safe select selectattr slice sort
		string striptags sum title tojson trim truncate unique upper urlencode urlize wordcount wordwrap xmlattr`)
	infix := strings.Fields("or and in if else is == != < > <= >= * / // % ** ~ = : , + - | .")
	valued := false // a value is before this word
	for i, word := range words {
		before := ""
		if i > 0 {
			before = words[i-1]
		}
		operator := slices.Contains(infix, word) && (before != "." || word == ".")
		switch {
		case before == "|" && !soft && !slices.Contains(filters, word):
			return fmt.Errorf("no filter named '%s'", word)
		case before == "not" && word == "in" && !slices.Contains(words, "is"):
			valued = false
		case word == "not", before == "is" && word == "in", !valued && (word == "-" || word == "+"):
			continue
		case strings.Contains("([{", word):
			valued = false
		case strings.Contains(")]}", word):
			valued = true
		case valued && operator, before == ":" && word == ":", before == "," && word == ",", word == "*" || word == "**":
			valued = false
		case operator && (word != ":" || before != "["):
			return fmt.Errorf("unexpected '%s'", word)
		case valued && before != "" && !slices.Contains(words, "is") && (word[0] != before[0] || !strings.Contains(`'"`, word[:1])):
			return fmt.Errorf("expected token 'end of print statement', got '%s'", word)
		default:
			valued = !operator
		}
	}
	if !valued {
		return fmt.Errorf("expected an expression, got 'end of print statement'")
	}
	return nil
}

// value returns the value of an expression that is a variable or a constant, and the text of any other expression.
func (j *jinja) value(words []string, tag string) (string, error) {
	if len(words) == 1 && strings.Contains(`'"`, words[0][:1]) {
		return words[0][1 : len(words[0])-1], nil
	}
	path, rest := jinjaPath(words)
	if len(path) == 0 || j.soft > 0 {
		return tag, nil
	}
	var at any = j.vars
	for n, name := range path {
		of, is := at.(map[string]any)
		if !is {
			return tag, nil
		}
		value, known := of[regex.Of(`[-.:/]`).ReplaceAllString(name, "_")]
		switch {
		case known:
			at = value
		case n < len(path)-1, len(rest) > 0 && rest[0] == "-":
			return "", fmt.Errorf("'%s' is undefined", name)
		case len(rest) > 0:
			return tag, nil
		default:
			return "CI_MISSING_JINJA_VAR/" + name, nil
		}
	}
	if text, is := at.(string); is && len(rest) == 0 {
		return text, nil
	}
	return tag, nil
}

// jinjaPath returns the variable with which an expression begins, and the words after it.
func jinjaPath(words []string) (path, rest []string) {
	if len(words) == 0 || !regex.Of(`^[\pL_]`).MatchString(words[0]) || words[0] == "not" {
		return nil, words
	}
	for path, rest = words[:1:1], words[1:]; len(rest) > 1; {
		switch {
		case rest[0] == ".":
			path, rest = append(path, rest[1]), rest[2:]
		case rest[0] == "[" && len(rest) > 2 && rest[2] == "]" && strings.Contains(`'"`, rest[1][:1]):
			path, rest = append(path, strings.Trim(rest[1], `'"`)), rest[3:]
		case rest[0] == "[" || rest[0] == "(":
			return nil, rest
		default:
			return path, rest
		}
	}
	return path, rest
}

// statement begins or ends a statement.
func (j *jinja) statement(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("tag name expected")
	}
	name, last := words[0], ""
	if len(j.open) > 0 {
		last = j.open[len(j.open)-1]
	}
	muted := func(of string) bool { return slices.Contains(strings.Fields("else for macro call set"), of) }
	switch ended, isEnd := strings.CutPrefix(name, "end"); {
	case isEnd && (ended == last || last == "else" && ended == "if"):
		if j.open = j.open[:len(j.open)-1]; muted(last) {
			j.mute--
		}
		if ended == "if" {
			j.soft--
		}
		return nil
	case name == "else" && last == "for", (name == "else" || name == "elif") && last == "else":
		return nil
	case (name == "else" || name == "elif") && last == "if":
		j.open[len(j.open)-1] = "else" // only the first branch is taken
		j.mute++
		return nil
	}
	for i, word := range words { // names that it sets
		if before := words[max(0, i-1)]; before != "." && regex.Of(`^[\pL_]`).MatchString(word) && slices.Contains([]string{"for", "set", "macro", "with"}, name) {
			if _, known := j.vars[word]; !known {
				j.vars[word] = nil
			}
		}
	}
	switch {
	case slices.Contains(strings.Fields("if for macro call filter with block autoescape"), name), name == "set" && !slices.Contains(words, "="):
		j.open = append(j.open, name)
		if muted(name) {
			j.mute++
		}
		if name == "if" {
			j.soft++
			return jinjaExpression(words[1:], true)
		}
	case !slices.Contains([]string{"set", "do", "print"}, name):
		return fmt.Errorf("encountered unknown tag '%s'", name)
	}
	return nil
}
