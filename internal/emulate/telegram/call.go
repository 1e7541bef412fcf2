package telegram

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// readCall reads the parameters of a method call: a form, with or without files.
func readCall(r *http.Request, method string) (Call, error) {
	c := Call{Method: method, Params: map[string]string{}, At: time.Now()}
	if err := r.ParseMultipartForm(largestForm); err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return Call{}, fmt.Errorf("unreadable form: %w", err)
	}
	for key, values := range r.Form {
		c.Params[key] = values[0]
	}
	if r.MultipartForm == nil {
		return c, nil
	}
	c.Files, c.names = map[string][]byte{}, map[string]string{}
	for field, headers := range r.MultipartForm.File {
		f, err := headers[0].Open()
		if err != nil {
			return Call{}, fmt.Errorf("unreadable upload: %w", err)
		}
		data, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			return Call{}, fmt.Errorf("unreadable upload: %w", err)
		}
		if strings.ContainsAny(headers[0].Filename, `/\`) {
			return Call{}, fmt.Errorf("the file name of %s is a path", field)
		}
		c.Files[field], c.names[field] = data, headers[0].Filename
	}
	return c, nil
}
