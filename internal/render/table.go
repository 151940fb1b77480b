package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table prints rows below upper-case headers, columns apart by three blanks,
// as kubectl does.
func Table(w io.Writer, headers []string, rows [][]string) error {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	cells(t, headers)
	for _, row := range rows {
		cells(t, row)
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

// cells writes the cells of a line, without what would end one.
func cells(w io.Writer, texts []string) {
	for i, text := range texts {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		fmt.Fprint(w, strings.Map(func(r rune) rune {
			if r < ' ' {
				return ' '
			}
			return r
		}, text))
	}
	fmt.Fprintln(w)
}
