// definitions copies the definitions of the standard channel out of the archive of a version of the Gateway API module.
// The go command unpacks no version that asks for a newer Go, and its archive is there nevertheless.
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
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: definitions ARCHIVE FOLDER")
		os.Exit(2)
	}
	if err := extract(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "definitions:", err)
		os.Exit(1)
	}
}

func extract(archive, folder string) error {
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
		name := path.Base(file.Name)
		if !strings.HasSuffix(path.Dir(file.Name), "/config/crd/standard") || !strings.HasPrefix(name, "gateway.networking.") {
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
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return err
		}
		found++
	}
	if found == 0 {
		return fmt.Errorf("%s has no definitions", archive)
	}
	return nil
}
