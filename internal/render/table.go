package render

import (
	"bytes"
	"io"
	"strings"
	"text/tabwriter"
)

// Table prints rows below upper-case headers, columns apart by three blanks,
// as kubectl does.
func Table(w io.Writer, headers []string, rows [][]string) error {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, row := range append([][]string{headers}, rows...) {
		if _, err := io.WriteString(t, cells(row)); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for l := range strings.Lines(b.String()) {
		if _, err := io.WriteString(w, strings.TrimRight(l, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// cells makes a line of cells, without what would end one.
func cells(texts []string) string {
	clean := make([]string, len(texts))
	for i, text := range texts {
		clean[i] = strings.Map(func(r rune) rune {
			if r < ' ' {
				return ' '
			}
			return r
		}, text)
	}
	return strings.Join(clean, "\t") + "\n"
}
