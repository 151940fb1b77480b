// Command docgen writes reference documentation: for each command, a page of Markdown in
// docs/commands for the site and a manual page in docs/man for a release. It also writes
// the JSON Schema of manifests to docs/public, for the site. "make docs" runs it in the
// root of the repository:
//
//	go run ./internal/cli/internal/docgen
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/clusterawsadm/clusterawsadm/internal/cli"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/pkg/schema"
)

const target = "docs"

func main() {
	if err := run(target); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

// run writes the pages into the folders commands and man, and the schema into public. Other files there are deleted: they
// are pages of commands that do not exist any more.
func run(folder string) error {
	pages, err := reference()
	if err != nil {
		return err
	}
	if pages["public/schema.json"], err = schema.JSON(); err != nil {
		return err
	}
	for _, name := range []string{"commands", "man", "public"} {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil { //nolint:gosec // the pages are public
			return err
		}
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil { //nolint:gosec // the pages are public
			return err
		}
	}
	return nil
}

// reference returns the pages of all commands by the name of their file. They are the same
// for every user, machine and day.
func reference() (map[string][]byte, error) {
	pages := map[string][]byte{}
	for _, cmd := range available(commands()) {
		cmd.Long = fenced(cmd.Long)
		markdown, manual := &bytes.Buffer{}, &bytes.Buffer{}
		// The page has no source that could be edited.
		fmt.Fprintf(markdown, "---\ntitle: %s\neditLink: false\n---\n\n", cmd.CommandPath())
		body := &bytes.Buffer{}
		if err := doc.GenMarkdown(cmd, body); err != nil {
			return nil, err
		}
		markdown.WriteString(raised(body.String()))
		root := cmd.Root().Name()
		epoch := time.Unix(0, 0).UTC()
		if err := doc.GenMan(cmd, &doc.GenManHeader{Section: "1", Source: root, Manual: "Commands of " + root, Date: &epoch}, manual); err != nil {
			return nil, err
		}
		path := cmd.CommandPath()
		pages["commands/"+strings.ReplaceAll(path, " ", "_")+".md"] = markdown.Bytes()
		pages["man/"+strings.ReplaceAll(path, " ", "-")+".1"] = bytes.Replace(manual.Bytes(), []byte(`"Jan 1970"`), []byte(`""`), 1)
	}
	return pages, nil
}

// raised makes the headings of a page one level higher: cobra's pages begin with one of the second. Comments in code
// blocks are not headings.
func raised(page string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if !code && strings.HasPrefix(line, "##") {
			line = line[1:]
		}
		b.WriteString(line)
	}
	return b.String()
}

// commands returns the root command of a user without settings.
func commands() *cobra.Command {
	return cli.Commands(&env.Env{
		In: strings.NewReader(""), Out: io.Discard, Err: io.Discard,
		LookupEnv: func(string) (string, bool) { return "", false },
		Size:      func() (columns, rows int) { return 0, 0 },
		HomeDir:   "~",
		ConfigDir: "~/.config",
	})
}

// available lists a command and those below it that help shows.
func available(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			all = append(all, available(sub)...)
		}
	}
	return all
}

// fenced marks the indented paragraphs of a help text as code. Markdown would otherwise join
// the lines of a list of names to one paragraph.
func fenced(help string) string {
	paragraphs := strings.Split(strings.TrimSpace(help), "\n\n")
	for n, p := range paragraphs {
		if strings.HasPrefix(p, "  ") || strings.HasPrefix(p, "\t") {
			paragraphs[n] = "```\n" + p + "\n```"
		}
	}
	return strings.Join(paragraphs, "\n\n")
}
