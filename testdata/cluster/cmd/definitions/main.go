// definitions copies definitions out of the archive of a Go module, by a pattern of their paths in the module. The go
// command unpacks no module that asks for a newer Go, but stores its archive.
package main

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: definitions ARCHIVE PATTERN FOLDER")
		os.Exit(2)
	}
	if err := extract(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "definitions:", err)
		os.Exit(1)
	}
}

func extract(archive, pattern, folder string) error {
	reader, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer reader.Close()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	found := 0
	for _, file := range reader.File {
		// Paths in an archive begin with the name and the version of the module, such as example.com/module@v1.2.3/.
		_, versioned, _ := strings.Cut(file.Name, "@")
		_, name, _ := strings.Cut(versioned, "/")
		matches, err := path.Match(pattern, name)
		if err != nil {
			return err
		}
		if !matches {
			continue
		}
		content, err := file.Open()
		if err != nil {
			return err
		}
		text, err := io.ReadAll(content)
		content.Close()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, path.Base(name)), text, 0o644); err != nil {
			return err
		}
		found++
	}
	if found == 0 {
		return fmt.Errorf("%s has no %s", archive, pattern)
	}
	return nil
}
