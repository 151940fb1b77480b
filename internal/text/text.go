// Package text formats lists, plurals, numbers and optional parts of messages.
package text

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Prefixed returns s after a prefix, or "" if s is empty.
func Prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// Several lists the first of many names.
func Several(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Count returns a number with its noun: "1 subnet", "3 subnets", "2 policies".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, plural(noun))
}

// plural returns the plural of a noun that forms it with an s, or with ies after
// a consonant and y. Nouns in s or data are the same in both.
func plural(noun string) string {
	switch {
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "data"):
		return noun
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ay") && !strings.HasSuffix(noun, "ey"):
		return strings.TrimSuffix(noun, "y") + "ies"
	}
	return noun + "s"
}

// Thousands separates the thousands of a number that is not negative: "1,243.50".
func Thousands(number string) string {
	whole, fraction, _ := strings.Cut(number, ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	return whole + Prefixed(".", fraction)
}

// columns is the number of columns that a text takes on a terminal. Sequences that set a colour (\xff[31m in package
// render) take none.
func columns(s string) int {
	n := utf8.RuneCountInString(s)
	for {
		_, sequence, ok := strings.Cut(s, "\xff[")
		end := strings.IndexByte(sequence, 'm')
		if !ok || end < 0 {
			return n
		}
		n -= len("\xff[") + end + 1
		s = sequence[end+1:]
	}
}

// Wrap breaks the lines of paragraphs at spaces, so that they have at most that many
// characters where their words allow it. An empty line ends a paragraph, and lines that begin
// with a space are not changed.
func Wrap(s string, width int) string {
	var b strings.Builder
	column := 0
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, " \n")
		if line == "" || strings.HasPrefix(line, " ") {
			if column > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(line + "\n")
			column = 0
			continue
		}
		for _, word := range strings.Fields(line) {
			long := columns(word)
			switch {
			case column == 0:
			case column+1+long > width:
				b.WriteByte('\n')
				column = 0
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += long
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// WrapMessage breaks the lines of a message that are wider than a terminal, at spaces; 0 is any width. A line keeps
// its indentation. A command, in quotes or at the end of a line, is not broken, so that it can be copied.
func WrapMessage(s string, width int) string {
	if width <= 0 {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if columns(line) > width {
			lines[i] = wrapLine(line, width)
		}
	}
	return strings.Join(lines, "\n")
}

func wrapLine(line string, width int) string {
	rest := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(rest)]
	var b strings.Builder
	column := 0
	for _, word := range unbroken(rest) {
		long := columns(word)
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+long > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += long
	}
	return b.String()
}

// unbroken splits a line into words, and leaves commands in one piece.
func unbroken(line string) (words []string) {
	all := strings.Split(line, " ")
	for i := 0; i < len(all); i++ {
		end := i
		switch {
		case all[i] == "clusterawsadm", all[i] == "aws", all[i] == "kubectl":
			end = len(all) - 1
		case slices.Contains([]string{"(clusterawsadm", "(aws", "(kubectl"}, all[i]):
			for end < len(all)-1 && !strings.Contains(all[end], ")") {
				end++
			}
		case strings.HasPrefix(all[i], "'") && strings.Count(all[i], "'") == 1:
			for j := i + 1; j < len(all); j++ {
				if strings.Contains(all[j], "'") {
					end = j
					break
				}
			}
		}
		if word := strings.Join(all[i:end+1], " "); word != "" {
			words = append(words, word)
		}
		i = end
	}
	return words
}
