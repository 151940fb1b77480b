package render

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Table prints rows below upper-case headers, without lines and with three spaces between
// columns, as kubectl does.
func Table(w io.Writer, headers []string, rows [][]string) error {
	var b bytes.Buffer
	t := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
		tablewriter.WithConfig(tablewriter.Config{Header: plainCells(), Row: plainCells(), Behavior: tw.Behavior{TrimSpace: tw.Off}}),
	)
	t.Header(cells(headers))
	for _, row := range rows {
		if err := t.Append(cells(row)); err != nil {
			return err
		}
	}
	if err := t.Render(); err != nil {
		return err
	}
	for l := range strings.Lines(b.String()) { // tablewriter pads the last column with spaces
		if _, err := io.WriteString(w, strings.TrimRight(l, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// Fit leaves columns out of a table that is wider than the terminal, in this order, until it fits. A width of 0 is
// any.
func Fit(to int, headers []string, rows [][]string, less ...string) (fewer []string, shorter [][]string) {
	for _, name := range less {
		at := slices.Index(headers, name)
		if to == 0 || at < 0 || tableWidth(headers, rows) <= to {
			continue
		}
		headers = slices.Delete(slices.Clone(headers), at, at+1)
		for i := range rows {
			rows[i] = slices.Delete(slices.Clone(rows[i]), at, at+1)
		}
	}
	return headers, rows
}

// tableWidth is the number of columns of the terminal that a table takes.
func tableWidth(headers []string, rows [][]string) (sum int) {
	for i, h := range headers {
		wide := width(h)
		for _, row := range rows {
			wide = max(wide, width(row[i]))
		}
		sum += wide + 3
	}
	return sum - 3
}

// plainCells leaves the text of cells unchanged.
func plainCells() tw.CellConfig {
	return tw.CellConfig{
		Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
		Alignment:  tw.CellAlignment{Global: tw.AlignLeft},
		Padding:    tw.CellPadding{Global: tw.Padding{Right: "   ", Overwrite: true}},
	}
}

// cells replaces control characters, which would break the table.
func cells(texts []string) []string {
	clean := make([]string, len(texts))
	for i, text := range texts {
		clean[i] = strings.Map(func(r rune) rune {
			if r < ' ' {
				return ' '
			}
			return r
		}, text)
	}
	return clean
}
