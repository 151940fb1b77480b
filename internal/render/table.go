package render

import (
	"bytes"
	"io"
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
