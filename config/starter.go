package config

import (
	_ "embed"
	"fmt"
	"io"
)

//go:embed starter.yaml
var starter string

// Init writes a commented starter configuration, which is valid as it is.
func Init(w io.Writer) error {
	if _, err := io.WriteString(w, starter); err != nil {
		return fmt.Errorf("write starter configuration: %w", err)
	}
	return nil
}
